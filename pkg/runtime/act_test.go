package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// actOn does something to the newest wait as a person.
func actOn(w *world, p *process, kind session.WaitActKind, who string, change ...func(*runtime.ActParams)) (runtime.Acted, error) {
	params := runtime.ActParams{Key: w.key, Wait: w.waits()[len(w.waits())-1].Wait.ID, Kind: kind, Caller: runtime.Caller{Who: who, From: "phone"}}
	switch kind {
	case session.ActDismissed:
		params.Reason = "not needed"
	case session.ActExtended:
		params.Deadline = new(epoch.Add(2 * time.Hour))
	case session.ActDelegated:
		params.To = "cem"
	case session.ActReminded, session.ActEscalated, session.ActStoodIn: // nobody asks for those
	}
	for _, c := range change {
		c(&params)
	}
	return p.Act(context.Background(), params)
}

// askedOf waits for an approval of ann or ben, for an hour.
func askedOf(t *testing.T) (*world, *process) {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("guarded", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{
			Name: "guarded", Approve: tool.Always[textIn], Who: []string{"ann", "ben"}, Expiry: &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny},
		}, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
			made.add("ran " + in.Text)
			return "ran", nil
		}))
	}))
	p := w.process()
	w.run(p, "go")
	w.flush()
	return w, p
}

func approveAs(w *world, p *process, who string) (runtime.Submitted, error) {
	a := yes()
	a.Kind, a.Wait = session.AnswerApproval, w.waits()[0].Wait.ID
	return p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Answer: a, Caller: runtime.Caller{Who: who, From: "web"}})
}

// TestDismiss: the call ends as one that nobody will answer for, in the words of its kind, with who
// dismissed it and why, and runs never.
func TestDismiss(t *testing.T) {
	t.Parallel()
	for kind, want := range map[session.WaitKind]struct {
		status llm.ResultStatus
		text   string
	}{
		session.WaitApproval:   {llm.ResultDenied, `"Nobody will answer what this call waits for: it was dismissed by bob: not needed"`},
		session.WaitQuestion:   {llm.ResultDenied, `"Nobody will answer what this call waits for: it was dismissed by bob: not needed"`},
		session.WaitClientTool: {llm.ResultError, `"Nobody will answer what this call waits for: it was dismissed by bob: not needed"`},
		session.WaitUnknown: {llm.ResultUnknown, `"The outcome of this call is not known: it was started and may or may not have taken effect. ` +
			`Check before you try again. Nobody will answer what this call waits for: it was dismissed by bob: not needed"`},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, kind, session.ExpireDeny, nil)
			ran := len(w.effects.all())
			out, err := actOn(w, p, session.ActDismissed, "bob")
			require.NoError(t, err)
			require.Equal(t, runtime.ContinuationResumed, out.Continuation)
			require.Equal(t, session.AnswerDismissal, out.Record.Answer.Kind)
			require.Equal(t, []string{session.NeedsDismissal}, out.Record.Wait.Needs, "an older program must not take it for another answer")
			again, err := actOn(w, p, session.ActDismissed, "bob")
			require.NoError(t, err)
			require.True(t, again.Repeated)
			require.NoError(t, p.work())

			s := w.session()
			require.Equal(t, session.StatusCompleted, s.Status)
			require.Equal(t, session.TriggerSubmit, s.RunRecord.Trigger)
			require.Len(t, results(s), 1)
			for _, r := range results(s) {
				require.Equal(t, want.status, r.Status)
				require.JSONEq(t, want.text, string(r.Output))
			}
			require.Len(t, w.effects.all(), ran, "it did not run")
			entries := w.journal()
			i := slices.IndexFunc(entries, func(e journal.Entry) bool { return len(e.Answers) > 0 })
			require.Equal(t, []string{session.NeedsDismissal}, entries[i].Needs)
			require.Equal(t, "bob", entries[i].Answers[0].Who)
			w.checkAtRest()
		})
	}
}

// TestDismiss_kinds_without: what asks for a message is not dismissed.
func TestDismiss_kinds_without(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitInput, session.ExpireDeny, nil)
	_, err := actOn(w, p, session.ActDismissed, "bob")
	require.Equal(t, runtime.CodeWrongKind, codeOf(err))
	require.Equal(t, session.WaitOpen, w.waits()[0].State)
}

// TestDismiss_counts_as_no_decision: a decision about all approvals rejects what is not named, which
// fits what was dismissed; to approve it does not.
func TestDismiss_counts_as_no_decision(t *testing.T) {
	t.Parallel()
	w, p := deciding(t)
	_, err := actOn(w, p, session.ActDismissed, "bob", func(a *runtime.ActParams) { a.Wait = "w2-2" })
	require.NoError(t, err)
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-2"}})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"deploy 1": 1}, w.effects.all())
}

// TestExtend: the wait expires at the later deadline, once, and not before; it can be answered till then.
func TestExtend(t *testing.T) {
	t.Parallel()
	for _, kind := range []session.WaitKind{session.WaitApproval, session.WaitQuestion, session.WaitClientTool, session.WaitUnknown, session.WaitInput} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, kind, session.ExpireFail, nil)
			until := epoch.Add(5 * time.Hour)
			was := *w.open(kind).Wait.Deadline
			out, err := actOn(w, p, session.ActExtended, "bob", func(a *runtime.ActParams) { a.Deadline, a.Reason = &until, " ann is away " })
			require.NoError(t, err)
			require.Equal(t, runtime.ContinuationWaiting, out.Continuation)
			require.Equal(t, session.Deadline{At: until, Outcome: was.Outcome, After: was.After}, *out.Record.Wait.Deadline)
			require.Equal(t, until, *out.Record.Due)
			require.Equal(t, []session.WaitAct{{Kind: session.ActExtended, Who: "bob", From: "phone", Reason: "ann is away", At: w.clock.Now().UTC(), Deadline: &until}}, out.Record.Acts)
			require.Empty(t, out.Record.Wait.Needs, "an older program goes by the deadline of the record")

			w.clock.advance(was.At.Sub(w.clock.Now()))
			require.Zero(t, sweepOf(t, p).Expired, "the deadline that was")
			again, err := actOn(w, p, session.ActExtended, "bob", func(a *runtime.ActParams) { a.Deadline, a.Reason = &until, "ann is away" })
			require.NoError(t, err)
			require.True(t, again.Repeated)
			w.clock.advance(until.Sub(w.clock.Now()))
			require.Equal(t, 1, sweepOf(t, p).Expired)
			require.NoError(t, p.work())
			require.Equal(t, "wait_expired", w.session().Failure.Type)
		})
	}
}

// TestDelegate: a person who was named may answer, is recorded in whose place they did, and may
// delegate on; nobody else may do either.
func TestDelegate(t *testing.T) {
	t.Parallel()
	w, p := askedOf(t)
	_, err := approveAs(w, p, "cem")
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	_, err = actOn(w, p, session.ActDelegated, "cem", func(a *runtime.ActParams) { a.To = "dan" })
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "who may not answer may not delegate")
	out, err := actOn(w, p, session.ActDelegated, "ann")
	require.NoError(t, err)
	require.Equal(t, []string{"ann", "ben", "cem"}, out.Record.Wait.Who)
	require.Empty(t, out.Record.Wait.Needs, "an older program goes by the people of the record")
	again, err := actOn(w, p, session.ActDelegated, "ann")
	require.NoError(t, err)
	require.True(t, again.Repeated)
	_, err = actOn(w, p, session.ActDelegated, "cem", func(a *runtime.ActParams) { a.To = "dan" })
	require.NoError(t, err)
	_, err = actOn(w, p, session.ActDelegated, "cem", func(a *runtime.ActParams) { a.To = "ben" })
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err), "ben may answer for himself")

	found, err := p.Inbox(context.Background(), runtime.InboxParams{Tenant: w.key.Tenant, User: "dan"})
	require.NoError(t, err)
	require.Len(t, found.Items, 1, "it is in the inbox of the person it was delegated to")
	done, err := approveAs(w, p, "dan")
	require.NoError(t, err)
	require.Equal(t, "ann", done.Answer.For, "whoever it was delegated to answers in the place of the first")
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"ran 1": 1}, w.effects.all())
	entries := w.journal()
	i := slices.IndexFunc(entries, func(e journal.Entry) bool { return len(e.Answers) > 0 })
	require.Equal(t, "ann", entries[i].Answers[0].For)

	w, p = askedOf(t)
	_, err = actOn(w, p, session.ActDelegated, "ann")
	require.NoError(t, err)
	out, err = actOn(w, p, session.ActDismissed, "cem")
	require.NoError(t, err)
	require.Equal(t, "ann", out.Record.Answer.For, "also who dismisses it")
}

// TestDelegate_of_everyones: where everyone may answer, a delegation keeps nobody out.
func TestDelegate_of_everyones(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	out, err := actOn(w, p, session.ActDelegated, "ann")
	require.NoError(t, err)
	require.Empty(t, out.Record.Wait.Who)
	require.Equal(t, "cem", out.Record.Acts[0].To)
	_, err = approveAs(w, p, "ben")
	require.NoError(t, err)
}

// TestAct_refused is what is refused, with its code; nothing is changed by it.
func TestAct_refused(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) func(*runtime.ActParams) {
		return func(a *runtime.ActParams) { a.Deadline = new(epoch.Add(d)) }
	}
	to := func(name string) func(*runtime.ActParams) { return func(a *runtime.ActParams) { a.To = name } }
	for name, c := range map[string]struct {
		kind   session.WaitActKind
		who    string
		change func(*runtime.ActParams)
		before func(w *world, p *process)
		want   runtime.Code
	}{
		"no such act":              {"forgotten", "ann", func(*runtime.ActParams) {}, nil, runtime.CodeInvalidInput},
		"no such wait":             {session.ActExtended, "ann", func(a *runtime.ActParams) { a.Wait = "w2-9" }, nil, runtime.CodeWaitNotFound},
		"no wait at all":           {session.ActExtended, "ann", func(a *runtime.ActParams) { a.Wait = "" }, nil, runtime.CodeWaitNotFound},
		"no such session":          {session.ActExtended, "ann", func(a *runtime.ActParams) { a.Key.ID = "s9" }, nil, runtime.CodeSessionNotFound},
		"dismissed for no reason":  {session.ActDismissed, "ann", func(a *runtime.ActParams) { a.Reason = " " }, nil, runtime.CodeInvalidInput},
		"too long a reason":        {session.ActDismissed, "ann", func(a *runtime.ActParams) { a.Reason = strings.Repeat("x", 2000) }, nil, runtime.CodeInputTooLarge},
		"dismissed by another":     {session.ActDismissed, "eve", func(*runtime.ActParams) {}, nil, runtime.CodeNotAllowed},
		"extended by another":      {session.ActExtended, "eve", func(*runtime.ActParams) {}, nil, runtime.CodeNotAllowed},
		"extended till nothing":    {session.ActExtended, "ann", func(a *runtime.ActParams) { a.Deadline = nil }, nil, runtime.CodeInvalidInput},
		"extended to the same":     {session.ActExtended, "ann", at(time.Hour), nil, runtime.CodeInvalidInput},
		"extended to earlier":      {session.ActExtended, "ann", at(time.Minute), nil, runtime.CodeInvalidInput},
		"extended too far":         {session.ActExtended, "ann", at(runtime.MaxExtension + time.Hour), nil, runtime.CodeInvalidInput},
		"delegated to nobody":      {session.ActDelegated, "ann", to(" "), nil, runtime.CodeInvalidInput},
		"delegated to themselves":  {session.ActDelegated, "ann", to("ann"), nil, runtime.CodeInvalidInput},
		"delegated to two lines":   {session.ActDelegated, "ann", to("a\nb"), nil, runtime.CodeInvalidInput},
		"delegated to a long name": {session.ActDelegated, "ann", to(strings.Repeat("x", 257)), nil, runtime.CodeInvalidInput},
		"a person with a deadline": {session.ActDelegated, "ann", at(time.Hour), nil, runtime.CodeInvalidInput},
		"a deadline with a person": {session.ActExtended, "ann", to("cem"), nil, runtime.CodeInvalidInput},
		"after an answer":          {session.ActExtended, "ann", func(*runtime.ActParams) {}, func(w *world, p *process) { _, _ = approveAs(w, p, "ann") }, runtime.CodeAlreadyAnswered},
		"after the deadline":       {session.ActExtended, "ann", func(*runtime.ActParams) {}, func(w *world, _ *process) { w.clock.advance(time.Hour) }, runtime.CodeExpired},
		"dismissed after it":       {session.ActDismissed, "ann", func(*runtime.ActParams) {}, func(w *world, _ *process) { w.clock.advance(time.Hour) }, runtime.CodeExpired},
		"after the session ended":  {session.ActDismissed, "ann", func(*runtime.ActParams) {}, func(w *world, p *process) { _, _ = w.stop(p, runtime.SignalCancel) }, runtime.CodeSessionEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := askedOf(t)
			if c.before != nil {
				c.before(w, p)
			}
			before := w.waits()[0]
			_, err := actOn(w, p, c.kind, c.who, c.change)
			require.Equal(t, c.want, codeOf(err), "%v", err)
			after := w.waits()[0]
			require.Empty(t, after.Acts)
			if c.want != runtime.CodeExpired {
				require.Equal(t, before.Answer, after.Answer)
				require.Equal(t, before.Wait, after.Wait)
			}
		})
	}
}

// TestExtend_without_deadline: what waits for ever is not extended.
func TestExtend_without_deadline(t *testing.T) {
	t.Parallel()
	w, p := deciding(t)
	_, err := actOn(w, p, session.ActExtended, "bob")
	require.Equal(t, runtime.CodeNoDeadline, codeOf(err))
}

// TestAct_bounded: a wait keeps so many acts, and can still be dismissed then.
func TestAct_bounded(t *testing.T) {
	t.Parallel()
	w, p := askedOf(t)
	later := func(n int) func(*runtime.ActParams) {
		return func(a *runtime.ActParams) { a.Deadline = new(epoch.Add(2*time.Hour + time.Duration(n)*time.Minute)) }
	}
	for n := range session.MaxWaitActs {
		_, err := actOn(w, p, session.ActExtended, "ann", later(n))
		require.NoError(t, err)
	}
	_, err := actOn(w, p, session.ActExtended, "ann", later(100))
	require.Equal(t, runtime.CodeTooManyActs, codeOf(err))
	_, err = actOn(w, p, session.ActDismissed, "ann")
	require.NoError(t, err)
	require.Len(t, w.waits()[0].Acts, session.MaxWaitActs)
}

// TestAct_crossing: somebody is about to extend, delegate or dismiss, has read the wait, and another one
// is first: an answer, an act or the deadline. Each is seen; nothing that was told is undone.
func TestAct_crossing(t *testing.T) {
	t.Parallel()
	first := map[string]func(w *world, p *process){
		"an answer": func(w *world, p *process) { _, err := approveAs(w, p, "ben"); require.NoError(w.t, err) },
		"the deadline": func(w *world, p *process) {
			w.clock.advance(time.Hour)
			_, err := p.Sweep(context.Background())
			require.NoError(w.t, err)
		},
		"a dismissal": func(w *world, p *process) {
			_, err := actOn(w, p, session.ActDismissed, "ben")
			require.NoError(w.t, err)
		},
		"a delegation": func(w *world, p *process) {
			_, err := actOn(w, p, session.ActDelegated, "ben", func(a *runtime.ActParams) { a.To = "dan" })
			require.NoError(w.t, err)
		},
		"an extension": func(w *world, p *process) {
			_, err := actOn(w, p, session.ActExtended, "ben", func(a *runtime.ActParams) { a.Deadline = new(epoch.Add(90 * time.Minute)) })
			require.NoError(w.t, err)
		},
		"a cancellation": func(w *world, p *process) { _, err := w.stop(p, runtime.SignalCancel); require.NoError(w.t, err) },
	}
	ends := map[string]runtime.Code{
		"an answer": runtime.CodeAlreadyAnswered, "the deadline": runtime.CodeExpired, "a dismissal": runtime.CodeAlreadyAnswered, "a cancellation": runtime.CodeSessionEnded,
	}
	for name, happens := range first {
		for _, kind := range session.WaitActKinds() {
			t.Run(fmt.Sprintf("%s before it is %s", name, kind), func(t *testing.T) {
				t.Parallel()
				w, p := askedOf(t)
				cross := &storeHook{when: updateOf(store.KindWait), happens: func() { happens(w, p) }}
				ann := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
				_, err := actOn(w, ann, kind, "ann")
				require.Equal(t, ends[name], codeOf(err), "%v", err)
				record := w.waits()[0]
				switch {
				case ends[name] != "":
					require.Empty(t, record.Acts, "what was refused is not there")
				case kind == session.ActDismissed:
					require.Len(t, record.Acts, 1)
					require.Equal(t, session.AnswerDismissal, record.Answer.Kind)
				default:
					require.Len(t, record.Acts, 2, "both are there")
				}
			})
		}
	}
}

// TestExtend_against_the_sweep: the sweep has found a wait overdue by the clock and an extension, begun
// in time, comes first: it does not expire. The other way round the extension is refused.
func TestExtend_against_the_sweep(t *testing.T) {
	t.Parallel()
	w, p := askedOf(t)
	cross := &storeHook{when: updateOf(store.KindWait), happens: func() {
		late := w.process(func(cfg *runtime.Config) { cfg.Now = func() time.Time { return w.clock.Now().Add(-time.Second) } })
		_, err := actOn(w, late, session.ActExtended, "ann")
		require.NoError(t, err)
	}}
	sweeper := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
	w.clock.advance(epoch.Add(time.Hour).Sub(w.clock.Now()))
	require.Zero(t, sweepOf(t, sweeper).Expired)
	require.Equal(t, session.WaitOpen, w.waits()[0].State)
	w.clock.advance(time.Hour)
	require.Equal(t, 1, sweepOf(t, p).Expired)
}

// TestAct_at_once: an extension, a dismissal, a delegation, an answer and the deadline in the same second,
// by processes of their own: one outcome, and whoever was told of success finds it.
func TestAct_at_once(t *testing.T) {
	t.Parallel()
	for n := range 5 * raced() {
		w, _ := askedOf(t)
		w.clock.advance(time.Hour - time.Minute)
		told := make([]error, 4)
		verbs := []func(p *process) error{
			func(p *process) error { _, err := actOn(w, p, session.ActExtended, "ann"); return err },
			func(p *process) error { _, err := actOn(w, p, session.ActDismissed, "ben"); return err },
			func(p *process) error { _, err := actOn(w, p, session.ActDelegated, "ann"); return err },
			func(p *process) error { _, err := approveAs(w, p, "ann"); return err },
		}
		late := n%2 == 0
		var all sync.WaitGroup
		for i, verb := range verbs {
			p := w.hurried()
			all.Go(func() { told[i] = verb(p) })
		}
		sweeper := w.hurried()
		all.Go(func() {
			if late {
				w.clock.advance(time.Minute)
			}
			_, _ = sweeper.Sweep(context.Background())
		})
		all.Wait()
		record := w.waits()[0]
		extended := slices.ContainsFunc(record.Acts, func(a session.WaitAct) bool { return a.Kind == session.ActExtended })
		delegated := slices.ContainsFunc(record.Acts, func(a session.WaitAct) bool { return a.Kind == session.ActDelegated })
		require.Equal(t, told[0] == nil, extended, "%v", told)
		require.Equal(t, told[2] == nil, delegated, "%v", told)
		require.False(t, told[1] == nil && told[3] == nil, "one of the two ended it")
		switch {
		case told[1] == nil:
			require.Equal(t, session.AnswerDismissal, record.Answer.Kind)
		case told[3] == nil:
			require.Equal(t, session.AnswerApproval, record.Answer.Kind)
		default:
			require.Equal(t, session.AnswerExpiry, record.Answer.Kind)
			require.False(t, extended)
		}
		require.NoError(t, w.process().settle())
		require.Equal(t, told[3] == nil, w.effects.count("ran 1") == 1, "%v", told)
	}
}

// TestAct_dies: the process dies at each of its writes; the same request again, under its key, does it
// once and drives on.
func TestAct_dies(t *testing.T) {
	t.Parallel()
	for _, kind := range session.WaitActKinds() {
		for at := 1; at < 4; at++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d after=%v", kind, at, after), func(t *testing.T) {
					t.Parallel()
					w, p := askedOf(t)
					key := func(a *runtime.ActParams) { a.IdempotencyKey = "k1" }
					dying := w.fusedProcess(&fuse{at: at, after: after}, true, 1)
					_, _ = actOn(w, dying, kind, "ann", key)
					out, err := actOn(w, p, kind, "ann", key)
					require.NoError(t, err)
					require.False(t, out.Repeated, "it is told as the first time")
					_, err = actOn(w, p, kind, "ann", key, func(a *runtime.ActParams) { a.Reason = "another" })
					require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
					if kind == session.ActDismissed {
						require.NoError(t, p.settle())
						require.Equal(t, session.StatusCompleted, w.session().Status)
						return
					}
					require.Len(t, w.waits()[0].Acts, 1)
				})
			}
		}
	}
}
