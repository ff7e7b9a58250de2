package runtime_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// movingOn returns a process on a store where something happens between two reads.
func movingOn(w *world) (*moving, *process) {
	m := &moving{Store: w.store}
	return m, w.process(func(cfg *runtime.Config) { cfg.Store = m })
}

// The session ends between the reading of the entries and that of HEAD.
func TestEntries_of_a_session_that_ends_while_it_is_read(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
		w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("echo", `{"text":"1"}`), says("bye")}}))
		p := w.process()
		w.start(p, "go")
		m, late := movingOn(w)
		m.beforeHead = func() { require.NoError(t, p.settle()) }
		page, err := late.Entries(context.Background(), runtime.EntriesParams{Key: w.key, After: 1, Wait: wait})
		require.NoError(t, err)
		if len(page.Entries) == 0 && !page.More {
			require.False(t, page.Resting, "entries 2 and 3 are there and the page says nothing follows")
		}
	}
}

// A message at a checkpoint closes approvals opened after it.
func TestResume_a_message_that_lost_closes_nothing_opened_since(t *testing.T) {
	t.Parallel()
	for name, checkpoint := range map[string]bool{"with its checkpoint": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`), calls("deploy", `{"text":"2"}`), says("bye")}}, func(a *agent.Agent) { a.Policy.AbandonOnMessage = true }))
			p := w.process()
			w.run(p, "go")
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: true, Answer: fill(w.waits()[0].Wait, session.Answer{Result: json.RawMessage(`1`)})})
			require.NoError(t, err)
			shown := ""
			if checkpoint {
				shown = w.session().Checkpoint().String()
			}
			m, late := movingOn(w)
			happens := func() { // somebody else goes on; the next approval opens
				_, err := resume(w, p, runtime.ResumeContinue)
				require.NoError(t, err)
				require.NoError(t, p.settle())
				require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
			}
			m.beforeHead = func() { m.beforeHead = happens } // not when it looks: when it is about to write
			_, err = resume(w, late, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message"); p.Checkpoint = shown })
			require.Equal(t, runtime.CodeAlreadyRunning, codeOf(err))
			require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State, "nobody has seen it")
		})
	}
}

// Between HEAD and the waits an answered session goes on and waits again.
func TestEntries_of_an_answered_session_that_waits_again(t *testing.T) {
	t.Parallel()
	for _, after := range []int64{2, 0} {
		w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`), calls("deploy", `{"text":"2"}`), says("bye")}}))
		p := w.process()
		w.run(p, "go")
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())})
		require.NoError(t, err)
		m, late := movingOn(w)
		m.beforeWaits = func() { require.NoError(t, p.settle()) }
		page, err := late.Entries(context.Background(), runtime.EntriesParams{Key: w.key, After: after})
		require.NoError(t, err)
		last := after
		if n := len(page.Entries); n > 0 {
			last = page.Entries[n-1].Seq
		}
		require.False(t, page.Resting && last < int64(len(w.journal())))
	}
}

// A page that was waited for says of a session that goes on that it rests.
func TestEntries_stay_rests_no_more_when_it_goes_on(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	m, late := movingOn(w)
	m.beforeHead = func() {
		m.beforeEntries = func() {
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
			require.NoError(t, p.settle())
		}
	}
	page, err := late.Entries(context.Background(), runtime.EntriesParams{Key: w.key, After: 2, Stay: true, Wait: 5 * time.Second, Limit: 1})
	require.NoError(t, err)
	require.Len(t, page.Entries, 1)
	require.True(t, page.More)
	require.Equal(t, session.StatusRunning, page.Status)
	require.False(t, page.Resting)
}

// An answer that names no wait crosses another: it must not go to what is asked next.
func TestSubmit_an_unnamed_answer_is_not_for_the_next_question(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the waits are read", "before it is written"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {needs("delete this?")}, "ann": {needs("delete ALL?"), says("bye")}, "bob": {says("deleted all")}}))
			p := w.process()
			w.run(p, "go")
			ann := func() {
				_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerMessage, Message: llm.TextParts("ann")}})
				require.NoError(t, err)
				require.NoError(t, p.settle())
				require.Equal(t, "delete ALL?", w.open(session.WaitInput).Wait.Text)
			}
			bob := w.process(func(cfg *runtime.Config) {
				if when == "before it is written" {
					cfg.Store = &storeHook{Store: cfg.Store, when: updateOf(store.KindWait), happens: ann}
				} else {
					cfg.Store = &moving{Store: cfg.Store, beforeWaits: ann}
				}
			})
			_, err := bob.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerMessage, Message: llm.TextParts("bob")}})
			require.Equal(t, session.WaitOpen, w.open(session.WaitInput).State, "bob has not seen it")
			require.Error(t, err)
		})
	}
}
