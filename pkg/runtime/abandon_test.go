package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// abandoning is a session that waits, whose agent lets a message abandon what it waits
// for. carol alone may answer for guarded and secret.
func abandoning(t *testing.T, input string) (*world, *process) {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{
		"mine": {calls("deploy", `{"text":"1"}`), says("bye")}, "hers": {calls("guarded", `{"text":"1"}`), says("bye")},
		"both": {calls("deploy", `{"text":"1"}`, "guarded", `{"text":"2"}`), says("bye")}, "two": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")},
		"her client": {calls("secret", `{"text":"1"}`), says("bye")}, "asks": {calls("pick", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")},
		"message": {says("heard")},
	}, func(a *agent.Agent) {
		a.Policy.AbandonOnMessage = true
		a.Tools = append(a.Tools,
			tool.Define(tool.Spec[textIn]{Name: "guarded", Approve: tool.Always[textIn], Who: []string{"carol"}}, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
				made.add("guarded " + in.Text)
				return "", nil
			}),
			tool.DefineClient(tool.Spec[textIn]{Name: "secret", Who: []string{"carol"}}))
	}))
	p := w.process()
	w.run(p, input)
	return w, p
}

// TestAbandon: a message may give up what its caller might have answered, and never
// what was approved, or answered, and stored.
func TestAbandon(t *testing.T) {
	t.Parallel()
	answer := func(caller runtime.Caller, hold bool, i int, a session.Answer) func(*world, *process) {
		return func(w *world, p *process) {
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: caller, HoldResume: hold, Answer: fill(w.waits()[i].Wait, a)})
			require.NoError(w.t, err)
		}
	}
	red := session.Answer{Selected: []string{"red"}}
	for name, c := range map[string]struct {
		input  string
		before []func(*world, *process)
		caller runtime.Caller
		want   runtime.Code
		// interrupted as well: what such a session is told.
		interrupted runtime.Code
		made        map[string]int // once all is approved that is open and it has gone on
	}{
		"what everybody may answer":         {input: "mine", caller: people},
		"what others may answer":            {input: "hers", caller: people, want: runtime.CodeNotAllowed, interrupted: runtime.CodeNotAllowed, made: map[string]int{"guarded 1": 1}},
		"what the caller may answer":        {input: "hers", caller: carol},
		"a client's result of others":       {input: "her client", caller: people, want: runtime.CodeNotAllowed, interrupted: runtime.CodeNotAllowed},
		"one of two of others":              {input: "both", caller: people, want: runtime.CodeNotAllowed, interrupted: runtime.CodeNotAllowed, made: map[string]int{"deploy 1": 1, "guarded 2": 1}},
		"approved, to be driven on":         {input: "mine", before: []func(*world, *process){answer(person, false, 0, yes())}, caller: people, want: runtime.CodeAlreadyRunning, interrupted: runtime.CodeStillWaiting, made: map[string]int{"deploy 1": 1}},
		"approved and held":                 {input: "mine", before: []func(*world, *process){answer(person, true, 0, yes())}, caller: person, want: runtime.CodeStillWaiting, interrupted: runtime.CodeStillWaiting, made: map[string]int{"deploy 1": 1}},
		"one approved, one open":            {input: "two", before: []func(*world, *process){answer(person, false, 0, yes())}, caller: people, want: runtime.CodeStillWaiting, interrupted: runtime.CodeStillWaiting, made: map[string]int{"deploy 1": 1, "deploy 2": 1}},
		"one rejected, one open":            {input: "two", before: []func(*world, *process){answer(person, false, 0, no())}, caller: people},
		"hers approved, everybody's open":   {input: "both", before: []func(*world, *process){answer(carol, false, 1, yes())}, caller: carol, want: runtime.CodeStillWaiting, interrupted: runtime.CodeStillWaiting, made: map[string]int{"deploy 1": 1, "guarded 2": 1}},
		"hers rejected, everybody's open":   {input: "both", before: []func(*world, *process){answer(carol, false, 1, no())}, caller: people},
		"rejected and held":                 {input: "mine", before: []func(*world, *process){answer(person, true, 0, no())}, caller: people, want: runtime.CodeStillWaiting},
		"a reply is stored, one is open":    {input: "asks", before: []func(*world, *process){answer(person, false, 0, red)}, caller: people, want: runtime.CodeStillWaiting, interrupted: runtime.CodeStillWaiting, made: map[string]int{"prepare 1": 1, "paint 1": 1, "deploy 2": 1}},
		"a client's result, stored by hers": {input: "her client", before: []func(*world, *process){answer(carol, true, 0, session.Answer{Result: json.RawMessage(`1`)})}, caller: people, want: runtime.CodeStillWaiting},
		"rejected, to be driven on":         {input: "mine", before: []func(*world, *process){answer(person, false, 0, no())}, caller: people, want: runtime.CodeAlreadyRunning},
	} {
		for _, interrupted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: "/interrupted"}[interrupted], func(t *testing.T) {
				t.Parallel()
				w, p := abandoning(t, c.input)
				for _, before := range c.before {
					before(w, p)
				}
				want := c.want
				if interrupted {
					w.interrupt()
					want = c.interrupted
				}
				entries, waits := len(w.journal()), w.waits()
				_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("message"), Caller: c.caller})
				require.Equal(t, want, codeOf(err))
				if want == "" {
					require.NoError(t, p.settle())
					require.Equal(t, session.StatusCompleted, w.session().Status)
					require.Empty(t, doneBy(w, "deploy", "guarded", "paint"), "what was given up does not run")
					w.checkAtRest()
					return
				}
				require.Len(t, w.journal(), entries)
				for i, record := range w.waits() {
					require.Equal(t, waits[i].State, record.State, "a refusal changes nothing")
				}
				if interrupted {
					_, err := w.goOn(p)
					require.NoError(t, err)
				}
				for _, record := range w.waits() { // it goes on as if there had been no message
					a := yes()
					if record.Wait.Kind == session.WaitClientTool {
						a = session.Answer{Result: json.RawMessage(`1`)}
					}
					if record.State == session.WaitOpen {
						_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: carol, Answer: fill(record.Wait, a)})
						require.NoError(t, err)
					}
				}
				if w.session().Status == session.StatusSuspended {
					_, err = w.goOn(p)
					require.NoError(t, err)
				}
				require.NoError(t, p.settle())
				require.Equal(t, session.StatusCompleted, w.session().Status)
				for what, times := range c.made {
					require.Equal(t, times, w.effects.count(what), what)
				}
				w.checkAtRest()
			})
		}
	}
}

// doneBy returns what some tools did.
func doneBy(w *world, tools ...string) []string {
	var did []string
	for what := range w.effects.all() {
		if name, _, _ := strings.Cut(what, " "); slices.Contains(tools, name) {
			did = append(did, what)
		}
	}
	return did
}

// TestAbandon_leaves_a_line: who is refused because of Who is written down, as with
// the verbs that answer.
func TestAbandon_leaves_a_line(t *testing.T) {
	t.Parallel()
	w, p := abandoning(t, "hers")
	_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("message"), Caller: people})
	require.ErrorContains(t, err, `w2-1 (approval of guarded), which may be answered by carol only, not by "bob"`)
	lines := w.items(store.KindAudit)
	require.Len(t, lines, 1)
	require.Equal(t, people.Who, lines[0].Audit.Who)
}

// TestAbandon_beside_an_approval: an approval that is stored after the message was
// looked at and before it is written is not given up.
func TestAbandon_beside_an_approval(t *testing.T) {
	t.Parallel()
	for _, approved := range []bool{true, false} {
		w, p := abandoning(t, "two")
		m, late := movingOn(w)
		m.beforeWaits = func() { // when it looks whether the message is for an input
			m.beforeWaits = func() {
				a := no()
				if approved {
					a = yes()
				}
				_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, a)})
				require.NoError(t, err)
			}
		}
		_, err := resume(w, late, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
		require.Nil(t, m.beforeWaits)
		if !approved {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
		require.Equal(t, session.WaitAnswered, w.waits()[0].State)
	}
}

// TestAbandon_what_an_entry_took_in: a call that was approved and waits for the others of
// its reply is not given up by a message, though its own wait is none of the newest.
func TestAbandon_what_an_entry_took_in(t *testing.T) {
	t.Parallel()
	for _, answer := range []session.Answer{yes(), no()} {
		approved := *answer.Approved
		t.Run(map[bool]string{true: "approved", false: "rejected"}[approved], func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "soon", `{"text":"2"}`), says("bye")}, "message": {says("heard")}}, func(a *agent.Agent) {
				a.Policy.AbandonOnMessage, a.Policy.HoldBatch = true, true
				a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{
					Name: "soon", Approve: tool.Always[textIn], Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireReask},
				}, func(context.Context, *tool.Call, textIn) (string, error) { return "", nil }))
			}))
			p := w.process()
			w.run(p, "go")
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, answer)})
			require.NoError(t, err)
			w.clock.advance(2 * time.Hour)
			_, err = p.Sweep(context.Background())
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, []session.Kind{session.KindStarted, session.KindSuspended, session.KindResumed, session.KindSuspended}, w.kinds())
			_, err = p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("message"), Caller: people})
			if !approved {
				require.NoError(t, err)
				require.NoError(t, p.settle())
				w.checkAtRest()
				return
			}
			require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
			require.ErrorContains(t, err, "w2-1 (approval of deploy)")
			_, err = w.submit(p, session.WaitApproval, no())
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, 1, made.count("deploy 1"), "what was approved runs")
			w.checkAtRest()
		})
	}
}

// A session does not name a message among what it takes that would be refused from everybody.
func TestAbandon_allowed(t *testing.T) {
	t.Parallel()
	w, p := abandoning(t, "both")
	takes := func() []session.Verb {
		view, err := p.View(context.Background(), w.key)
		require.NoError(t, err)
		return view.Allowed
	}
	require.Contains(t, takes(), session.VerbSend, "carol may send one")
	_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())})
	require.NoError(t, err)
	require.NotContains(t, takes(), session.VerbSend)
	for _, who := range []string{"ann", "carol"} {
		_, err := p.Send(context.Background(), runtime.SendParams{Key: w.key, Message: llm.TextParts("message"), Caller: runtime.Caller{Who: who, From: "test"}})
		require.Error(t, err)
	}
}
