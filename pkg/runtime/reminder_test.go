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

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// twoSeconds is a deadline of 2 s with a reminder 1 s before it; others than ann have 2 s more.
func twoSeconds(kind session.WaitKind, outcome session.DeadlineOutcome, value any) *tool.Expiry {
	x := &tool.Expiry{After: 2 * time.Second, Outcome: outcome, Value: value, Remind: []time.Duration{time.Second}}
	if kind != session.WaitInput {
		x.Escalate = &tool.Escalation{Who: []string{"eve"}, After: 2 * time.Second}
	}
	return x
}

// actsOf are the kinds of what was done to a wait, in order.
func actsOf(record journal.WaitRecord) string {
	var kinds []string
	for _, act := range record.Acts {
		kinds = append(kinds, string(act.Kind))
	}
	return strings.Join(kinds, " ")
}

// passes lets time pass in half seconds from when a wait was opened, until one is not open any more. Every
// process that is up sweeps twice, and works; each is a new one.
func (w *world) passes(wait session.Wait, up func(after time.Duration) bool, at map[time.Duration]func(p *process)) {
	w.t.Helper()
	for after := w.clock.Now().Sub(wait.OpenedAt); after < 2*time.Minute; after += 500 * time.Millisecond {
		w.clock.advance(wait.OpenedAt.Add(after).Sub(w.clock.Now()))
		if do := at[after]; do != nil {
			do(w.process())
		}
		if !up(after) {
			continue
		}
		p := w.process()
		for range 2 {
			_, err := p.Sweep(context.Background())
			require.NoError(w.t, err)
		}
		require.NoError(w.t, p.work())
		if w.recordOf(wait.ID).State != session.WaitOpen {
			return
		}
	}
	w.t.Fatal("it never ended")
}

func (w *world) recordOf(id string) journal.WaitRecord {
	records := w.waits()
	return records[slices.IndexFunc(records, func(r journal.WaitRecord) bool { return r.Wait.ID == id })]
}

// TestReminder_and_escalation_with_the_process_down is a deadline of 2 s with reminder, extension, escalation
// and each outcome, of every kind of wait, with no process there at each moment: each happens once, late
// where it must be, and a reminder is left out that would come after the deadline.
func TestReminder_and_escalation_with_the_process_down(t *testing.T) {
	t.Parallel()
	const second = time.Second
	down := map[string]struct {
		when                                      func(after time.Duration) bool
		plain, extended, message, messageExtended string
	}{
		"never": {
			func(time.Duration) bool { return false },
			"reminded escalated reminded", "reminded extended reminded escalated reminded", "reminded", "reminded extended reminded",
		},
		"at the reminder": {
			func(after time.Duration) bool { return after == second },
			"reminded escalated reminded", "extended reminded escalated reminded", "reminded", "extended reminded",
		},
		"between reminder and deadline": {
			func(after time.Duration) bool { return after > second && after < 2*second },
			"reminded escalated reminded", "reminded extended reminded escalated reminded", "reminded", "reminded extended reminded",
		},
		"at the deadline": {
			func(after time.Duration) bool { return after == 2*second || after == 5*second },
			"reminded escalated reminded", "reminded extended reminded escalated reminded", "reminded", "reminded extended reminded",
		},
		"for long": {
			func(after time.Duration) bool { return after < time.Minute },
			"escalated reminded", "extended escalated reminded", "", "extended",
		},
	}
	for _, c := range []struct {
		kind    session.WaitKind
		outcome session.DeadlineOutcome
		value   any
		want    llm.ResultStatus // "" when the task fails, "asked" again, "said" to the agent
	}{
		{session.WaitApproval, session.ExpireDeny, nil, llm.ResultTimedOut},
		{session.WaitApproval, session.ExpireDefault, true, llm.ResultSuccess},
		{session.WaitApproval, session.ExpireDefault, false, llm.ResultTimedOut},
		{session.WaitApproval, session.ExpireFail, nil, ""},
		{session.WaitApproval, session.ExpireReask, nil, "asked"},
		{session.WaitClientTool, session.ExpireDeny, nil, llm.ResultTimedOut},
		{session.WaitClientTool, session.ExpireDefault, 1, llm.ResultSuccess},
		{session.WaitClientTool, session.ExpireFail, nil, ""},
		{session.WaitClientTool, session.ExpireReask, nil, "asked"},
		{session.WaitQuestion, session.ExpireDeny, nil, llm.ResultError},
		{session.WaitQuestion, session.ExpireDefault, "Ann", llm.ResultSuccess},
		{session.WaitQuestion, session.ExpireFail, nil, ""},
		{session.WaitQuestion, session.ExpireReask, nil, "asked"},
		{session.WaitUnknown, session.ExpireDeny, nil, llm.ResultUnknown},
		{session.WaitUnknown, session.ExpireFail, nil, ""},
		{session.WaitUnknown, session.ExpireReask, nil, "asked"},
		{session.WaitInput, session.ExpireDefault, "there", "said"},
		{session.WaitInput, session.ExpireFail, nil, ""},
		{session.WaitInput, session.ExpireReask, nil, "asked"},
	} {
		for name, d := range down {
			for _, extends := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s %v/%s/extended=%v", c.kind, c.outcome, c.value, name, extends), func(t *testing.T) {
					t.Parallel()
					w, _ := expiringBy(t, c.kind, twoSeconds(c.kind, c.outcome, c.value), ifCalls(c.kind, "ann")...)
					opened := w.open(c.kind)
					wait, ran := opened.Wait, len(w.effects.all())
					require.Equal(t, wait.OpenedAt.Add(second), *opened.Due, "the first moment")
					at, want := map[time.Duration]func(*process){}, d.plain
					if c.kind == session.WaitInput {
						want = d.message
					}
					if extends {
						if want = d.extended; c.kind == session.WaitInput {
							want = d.messageExtended
						}
						at[1500*time.Millisecond] = func(p *process) {
							_, err := actOn(w, p, session.ActExtended, "ann", func(a *runtime.ActParams) { a.Deadline = new(wait.OpenedAt.Add(5 * second)) })
							require.NoError(t, err)
						}
					}
					w.passes(wait, func(after time.Duration) bool { return !d.when(after) }, at)
					record := w.recordOf(wait.ID)
					require.Equal(t, want, actsOf(record))
					require.Equal(t, session.AnswerExpiry, record.Answer.Kind)
					require.Equal(t, c.outcome, record.Answer.Outcome)
					require.Equal(t, c.kind != session.WaitInput, record.Answer.Escalated)
					answers := 0
					for _, e := range w.journal() {
						answers += len(e.Answers)
					}
					require.Equal(t, 1, answers, "one outcome")
					switch string(c.want) {
					case "":
						require.Equal(t, "wait_expired", w.session().Failure.Type)
					case "asked":
						again := w.open(c.kind)
						require.NotEqual(t, wait.ID, again.Wait.ID)
						require.Empty(t, again.Acts, "as it was asked first")
						require.Equal(t, wait.Who, again.Wait.Who)
						require.Equal(t, again.Wait.OpenedAt.Add(second), *again.Due)
						require.Equal(t, wait.Deadline.Escalate, again.Wait.Deadline.Escalate)
						return
					case "said":
						require.Equal(t, "there", w.session().Messages[2].Text())
					default:
						for _, r := range results(w.session()) {
							require.Equal(t, c.want, r.Status)
						}
					}
					if c.kind == session.WaitApproval && c.want == llm.ResultSuccess {
						ran++
					}
					require.Len(t, w.effects.all(), ran)
					w.checkAtRest()
				})
			}
		}
	}
}

func ifCalls(kind session.WaitKind, who ...string) []string {
	if kind == session.WaitInput {
		return nil
	}
	return who
}

// TestReminder_dies: the process dies at each of its writes while it reminds, escalates and lets the wait
// expire, before the write or before it hears of it. Who comes after it does what is left.
func TestReminder_dies(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			w, _ := expiringBy(t, session.WaitApproval, twoSeconds(session.WaitApproval, session.ExpireDefault, true), "ann")
			wait, f := w.open(session.WaitApproval).Wait, &fuse{at: at, after: after}
			dying := w.fusedProcess(f, true, 1)
			for range 8 {
				w.clock.advance(500 * time.Millisecond)
				_, _ = dying.Sweep(context.Background())
				_ = dying.work()
			}
			if !f.blown() {
				require.Greater(t, at, 6, "reminder, escalation, reminder, expiry, and those of the work: %v", f.ops)
				require.Equal(t, session.StatusCompleted, w.session().Status)
				break
			}
			for range 30 {
				w.clock.advance(time.Second)
				p := w.process()
				sweepOf(t, p)
				require.NoError(t, p.work())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status, "at %d of %v", at, f.ops)
			require.LessOrEqual(t, w.effects.count("ran 1"), 1, "who dies between the start of a call and its end leaves an unknown outcome")
			record := w.recordOf(wait.ID)
			require.Equal(t, session.AnswerExpiry, record.Answer.Kind)
			require.Contains(t, []string{"reminded escalated reminded", "escalated reminded", "reminded escalated"}, actsOf(record), "at %d of %v", at, f.ops)
			w.checkAtRest()
		}
	}
}

// TestReminder_at_once: reminder, extension, escalation, an answer and the deadline in the same second, by
// several sweeps and two people: each moment is reminded of once, it is escalated once at most, and
// one outcome counts.
func TestReminder_at_once(t *testing.T) {
	t.Parallel()
	for n := range 6 * raced() {
		w, _ := expiringBy(t, session.WaitApproval, twoSeconds(session.WaitApproval, session.ExpireDeny, nil), "ann")
		wait := w.open(session.WaitApproval).Wait
		w.clock.advance(time.Duration(1+n%2) * time.Second) // at the reminder, or at the deadline
		if n%3 == 2 {                                       // escalated, and at its end
			sweepOf(t, w.process())
			w.clock.advance(2 * time.Second)
			sweepOf(t, w.process())
		}
		var all sync.WaitGroup
		var extended, answered error
		sweepers := 3
		for range sweepers {
			p := w.hurried()
			all.Go(func() { _, _ = p.Sweep(context.Background()) })
		}
		extends, answers := w.hurried(), w.hurried()
		until := w.clock.Now().Add(4 * time.Second)
		all.Go(func() {
			_, extended = actOn(w, extends, session.ActExtended, "ann", func(a *runtime.ActParams) { a.Deadline = &until })
		})
		if n%2 == 0 {
			all.Go(func() { _, answered = approveAs(w, answers, "ann") })
		} else {
			all.Go(func() { _, answered = approveAs(w, answers, "eve") })
		}
		all.Wait()
		for range 40 {
			w.clock.advance(500 * time.Millisecond)
			p := w.process()
			sweepOf(t, p)
			require.NoError(t, p.work())
		}
		record := w.recordOf(wait.ID)
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.LessOrEqual(t, strings.Count(actsOf(record), "escalated"), 1)
		require.Equal(t, extended == nil, strings.Contains(actsOf(record), "extended"), "%v: %s", extended, actsOf(record))
		require.Equal(t, answered == nil, record.Answer.Kind == session.AnswerApproval, "%v: %v", answered, record.Answer)
		require.Equal(t, answered == nil, w.effects.count("ran 1") == 1, "%v", answered)
		var before time.Time
		for _, act := range record.Acts { // of one deadline each moment once
			if act.Kind == session.ActReminded {
				require.True(t, act.At.After(before), "%s", actsOf(record))
				before = act.At
			}
		}
		w.checkAtRest()
	}
}

// TestReminder_several: moments that have passed while nobody looked are one reminder, and no more are
// given than a wait may have, however often it is extended.
func TestReminder_several(t *testing.T) {
	t.Parallel()
	expiry := &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: []time.Duration{time.Minute, 30 * time.Minute, 20 * time.Minute, 10 * time.Minute}}
	w, p := expiringBy(t, session.WaitApproval, expiry)
	wait := w.open(session.WaitApproval)
	require.Equal(t, wait.Wait.OpenedAt.Add(30*time.Minute), *wait.Due)
	require.Empty(t, wait.Wait.Needs, "an older program loses the reminders and nothing else")
	w.clock.advance(45 * time.Minute)
	require.Equal(t, runtime.SweepResult{Reminded: 1}, sweepOf(t, p), "three quarters of an hour: two moments")
	require.Equal(t, runtime.SweepResult{}, sweepOf(t, p))
	require.Equal(t, wait.Wait.OpenedAt.Add(50*time.Minute), *w.waits()[0].Due)
	for n := range session.MaxWaitActs {
		require.Zero(t, sweepOf(t, p).Expired)
		_, err := actOn(w, p, session.ActExtended, "ann", func(a *runtime.ActParams) { a.Deadline = new(wait.Wait.OpenedAt.Add(time.Duration(n+2) * time.Hour)) })
		require.NoError(t, err, "reminders take no room of the acts of people")
		for _, before := range expiry.Remind[1:] {
			w.clock.advance(w.waits()[0].Wait.Deadline.At.Add(-before).Sub(w.clock.Now()))
			sweepOf(t, p)
		}
	}
	require.Equal(t, session.MaxReminded, strings.Count(actsOf(w.waits()[0]), "reminded"))
	require.Equal(t, w.waits()[0].Wait.Deadline.At, *w.waits()[0].Due, "what is left is the deadline")
}

// TestReminder_interrupted: the waits of an interrupted session remind, escalate and expire, and only
// to continue drives it on.
func TestReminder_interrupted(t *testing.T) {
	t.Parallel()
	w, _ := expiringBy(t, session.WaitApproval, twoSeconds(session.WaitApproval, session.ExpireDefault, true), "ann")
	wait := w.open(session.WaitApproval).Wait
	w.interrupt()
	w.passes(wait, func(time.Duration) bool { return true }, nil)
	for range 10 {
		w.clock.advance(time.Minute)
		p := w.process()
		sweepOf(t, p)
		require.NoError(t, p.work())
	}
	require.Equal(t, "reminded escalated reminded", actsOf(w.recordOf(wait.ID)))
	require.Equal(t, session.StatusInterrupted, w.session().Status)
	require.Empty(t, w.effects.all())
	p := w.process()
	_, err := w.goOn(p)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, map[string]int{"ran 1": 1}, w.effects.all())
}

// TestReminder_by_resume: who goes on with a session without a sweep has it reminded and escalated too.
func TestReminder_by_resume(t *testing.T) {
	t.Parallel()
	w, p := expiringBy(t, session.WaitApproval, twoSeconds(session.WaitApproval, session.ExpireDeny, nil), "ann")
	for _, want := range []string{"reminded", "reminded escalated", "reminded escalated reminded"} {
		w.clock.advance(time.Second)
		_, err := resume(w, p, runtime.ResumeContinue)
		require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
		require.Equal(t, want, actsOf(w.waits()[0]))
		require.Equal(t, runtime.CodeStillWaiting, codeOf(viewOf(t, w, p).Resume), "it is not over")
	}
	w.clock.advance(time.Second)
	_, err := resume(w, p, runtime.ResumeContinue)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// TestReminder_cost: a sweep spends one read and one write on a reminder, as on an expiry.
func TestReminder_cost(t *testing.T) {
	t.Parallel()
	w, _ := expiringBy(t, session.WaitApproval, twoSeconds(session.WaitApproval, session.ExpireDeny, nil), "ann")
	requests := func() (int64, runtime.SweepResult) {
		m := &metered{t: t}
		p := w.process(func(cfg *runtime.Config) { m.Store = cfg.Store; cfg.Store = m })
		swept := sweepOf(t, p)
		return m.seen.requests.Load(), swept
	}
	idle, _ := requests()
	for _, want := range []runtime.SweepResult{{Reminded: 1}, {Escalated: 1}} {
		w.clock.advance(time.Second)
		n, swept := requests()
		require.Equal(t, want, swept)
		require.Equal(t, idle+2, n)
	}
}
