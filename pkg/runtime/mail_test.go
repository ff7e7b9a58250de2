package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Mail is taken in once, whatever comes after it.
func TestMail_is_told_once(t *testing.T) {
	t.Parallel()
	made := newEffects()
	echo := calls("echo", `{"text":"1"}`)
	w := newWorld(t, made, helper(made, script{"go": {echo, echo, says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.StepsPerInvocation = 1 })
	w.start(p, "go")
	for _, message := range []string{"first", "second"} {
		w.mail(message, message)
		_, err := p.deliverOne(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, p.settle())
	told := map[string]int{}
	for _, m := range w.session().Messages {
		if m.Role == llm.RoleUser {
			told[m.Text()]++
		}
	}
	require.Equal(t, map[string]int{"go": 1, "first": 1, "second": 1}, told)
	w.checkAtRest()
}

// More mail than one entry takes in comes while a step ends: what rests rests all the same, and what
// is left is told later, once.
func TestMail_more_than_an_entry_takes(t *testing.T) {
	t.Parallel()
	const stepBytes = 128 << 10
	for name, c := range map[string]struct {
		plan   script
		want   session.Status
		signal runtime.SignalKind
	}{
		"suspending": {script{"go": {calls("deploy", `{"text":"1"}`)}}, session.StatusSuspended, ""},
		"failing":    {script{"go": {fails(&llm.Error{Class: llm.ClassInvalid})}}, session.StatusFailed, ""},
		"cancelled":  {script{"go": {says("bye")}}, session.StatusCancelled, runtime.SignalCancel},
		"completing": {script{"go": {says("bye")}}, session.StatusCompleted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			c.plan["next"] = []turn{says("next")}
			w := newWorld(t, made, helper(made, c.plan))
			came := false
			p := w.process(func(cfg *runtime.Config) {
				cfg.StepBytes, cfg.WatchEvery = stepBytes, time.Hour
				cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
					if e.Seq == 2 && !came {
						came = true
						for i := range 6 {
							w.mail(fmt.Sprintf("m%d", i), fmt.Sprint(i)+strings.Repeat("x", 20<<10))
						}
						if c.signal != "" {
							w.signal(c.signal)
						}
					}
				}}
			})
			w.start(p, "go")
			require.NoError(t, p.settle())
			require.True(t, came)
			require.Equal(t, c.want, w.session().Status)
			require.NotEmpty(t, w.journal()[1].Mail)
			require.Less(t, len(w.journal()[1].Mail), 6)
			switch c.want {
			case session.StatusSuspended:
				_, err := w.submit(p, session.WaitApproval, no())
				require.NoError(t, err)
			case session.StatusFailed:
				_, err := p.Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people, Message: llm.TextParts("next")})
				require.NoError(t, err)
			case session.StatusCancelled:
				w.start(p, "next")
			case session.StatusCompleted, session.StatusRunning, session.StatusInterrupted:
			}
			require.NoError(t, p.settle())
			require.Len(t, w.session().Mail, 6)
			told := map[string]int{}
			for _, m := range w.session().Messages {
				if m.Role == llm.RoleUser && len(m.Text()) > 20<<10 {
					told[m.Text()[:1]]++
				}
			}
			require.Equal(t, map[string]int{"0": 1, "1": 1, "2": 1, "3": 1, "4": 1, "5": 1}, told)
			w.checkAtRest()
		})
	}
}

// expires has an agent ask people for a time only.
func expires(after time.Duration, then session.DeadlineOutcome) func(*agent.Agent) {
	return func(a *agent.Agent) { a.InputExpiry = &tool.Expiry{After: after, Outcome: then} }
}

// The question to a person has expired and would be asked again: a message that has come meanwhile
// is the answer.
func TestMail_answers_what_would_be_asked_again(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the step", "when it ends"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {needs("where?")}, "there": {says("bye")}}, expires(time.Hour, session.ExpireReask)))
			w.run(w.process(), "go")
			require.Equal(t, session.StatusSuspended, w.session().Status)
			w.clock.advance(2 * time.Hour)
			came := false
			p := w.process(func(cfg *runtime.Config) {
				cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
					if !came && (e.Kind == session.KindResumed) == (when == "before the step") && e.Seq > 2 {
						came = true
						w.mail("m1", "there")
					}
				}}
			})
			sweepOf(t, p)
			require.NoError(t, p.settle())
			require.True(t, came)
			require.Equal(t, session.StatusCompleted, w.session().Status, "%v", w.kinds())
			w.checkAtRest()
		})
	}
}
