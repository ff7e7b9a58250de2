package runtime_test

import (
	"context"
	"fmt"
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

// givingUp are the writers of an entry that gives up a call that has not run.
type givingUp struct {
	entry session.Kind
	// program that writes it, where it is not that of the others.
	policy session.ChangePolicy
	// signal that has come, if that is why.
	signal journal.SignalKind
	do     func(w *world, p *process) error
}

func givingUps() map[string]givingUp {
	step := func(w *world, p *process) error {
		_, err := p.Deliver(context.Background(), w.wake(w.session().Next(), journal.WakeStep))
		return err
	}
	return map[string]givingUp{
		"dead letter": {entry: session.KindFailed, do: func(w *world, p *process) error {
			_, err := p.DeadLetter(context.Background(), w.wake(w.session().Next(), journal.WakeStep))
			return err
		}},
		"step that fails": {entry: session.KindFailed, policy: session.ChangeFail, do: step},
		"cancel":          {entry: session.KindCancelled, signal: journal.SignalCancel, do: step},
		"abort":           {entry: session.KindFailed, signal: journal.SignalAbort, do: step},
	}
}

// approved is a world whose session waits for a step that runs an approved call,
// "guarded", after a worker has died at it; giver gives the call up and meets
// something just before its entry.
func (c givingUp) approved(t *testing.T, run func(context.Context)) (w *world, p, giver *process, before *storeHook) {
	t.Helper()
	made := newEffects()
	as := func(system string) agent.Agent {
		return helper(made, script{"go": {calls("guarded", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
			a.System, a.Policy.OnChange = system, c.policy
			a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "guarded", Approve: tool.Always[textIn], Timeout: time.Hour},
				func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
					made.add("guarded")
					run(ctx)
					return "ran", nil
				}))
		})
	}
	w = newWorld(t, made, as("One."))
	p = w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
	w.run(p, "go")
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	dead := w.fusedProcess(&fuse{at: 2, after: true}, true, 1) // claims the resumption, writes it
	_, err = dead.Deliver(context.Background(), w.wake(w.session().Next(), journal.WakeResume))
	require.ErrorIs(t, err, errDied)
	require.Equal(t, session.KindResumed, w.session().Newest.Kind)
	w.claimAs("dying", w.session().Next())
	w.clock.advance(time.Hour)
	before = &storeHook{when: commits(c.entry)}
	change := []func(*runtime.Config){func(cfg *runtime.Config) {
		before.Store, cfg.Store = cfg.Store, before
		cfg.MaxClaims, cfg.WatchEvery = 1, time.Hour
	}}
	if c.policy != "" {
		change = append(change, withAgents(t, as("Another.")))
	}
	return w, p, w.process(change...), before
}

// A worker that gives a call up loses its entry to one that runs it: then nothing
// was given up. (A signal stays until it is obeyed, so that nobody runs it then.)
func TestClosing_goes_with_the_entry_that_says_so(t *testing.T) {
	t.Parallel()
	for name, c := range givingUps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, giver, before := c.approved(t, func(context.Context) {})
			met := false
			before.happens = func() {
				met = true
				require.Empty(t, w.items(store.KindTool), "nothing is closed but with the entry")
				if c.signal == "" {
					w.clock.advance(time.Hour)
					w.deliver(p, w.session().Next(), journal.WakeStep)
				}
			}
			if c.signal != "" {
				w.signal(c.signal)
			}
			require.NoError(t, c.do(w, giver))
			require.True(t, met)
			require.NoError(t, p.settle())
			if c.signal != "" {
				require.Equal(t, llm.ResultCancelled, results(w.session())["c2-1"].Status)
				require.Equal(t, journal.ToolClosed, w.items(store.KindTool)[0].Tool.State)
				require.Zero(t, w.effects.count("guarded"))
			} else {
				require.Equal(t, session.StatusCompleted, w.session().Status, "it lives after all")
				require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
				require.Equal(t, 1, w.effects.count("guarded"))
			}
			w.checkAtRest()
		})
	}
}

// pausing is a store that stops its worker at its mark of a call and after it has
// written the call's result, until it may go on.
type pausing struct {
	store.Store
	atMark, mark, finished, goOn chan struct{}
}

func newPausing(s store.Store) *pausing {
	return &pausing{s, make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

func (s *pausing) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if items[0].Kind != store.KindTool {
		return s.Store.Update(ctx, key, items...)
	}
	if items[0].Tool.State == journal.ToolStarted {
		close(s.atMark)
		<-s.mark
	}
	out, err := s.Store.Update(ctx, key, items...)
	if items[0].Tool.State == journal.ToolFinished {
		close(s.finished)
		<-s.goOn
	}
	return out, err
}

// pausedAtMark stops the worker of a message before its mark of a call, for longer
// than its lease: the store at which it stands, and how its delivery ends.
func (w *world) pausedAtMark(seq int64) (s *pausing, over <-chan error) {
	w.t.Helper()
	s = newPausing(w.store)
	frozen := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery = s, time.Hour })
	ended := make(chan error, 1)
	go func() {
		_, err := frozen.Deliver(context.Background(), w.wake(seq, journal.WakeStep))
		ended <- err
	}()
	<-s.atMark
	w.clock.advance(time.Hour)
	return s, ended
}

// A worker is frozen before its mark until another one is about to give the call up:
// the mark comes before the entry, which looks again and says what became of it.
func TestClosing_looks_again_when_the_call_is_started_meanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range givingUps() {
		for _, finished := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/finished=%v", name, finished), func(t *testing.T) {
				t.Parallel()
				inTool, leave := make(chan struct{}), make(chan struct{})
				w, _, giver, before := c.approved(t, func(context.Context) {
					close(inTool)
					<-leave
				})
				s, over := w.pausedAtMark(w.session().Next())
				before.happens = func() {
					close(s.mark)
					select {
					case <-inTool:
					case <-over:
						require.Fail(t, "its mark was refused, and no entry says yet that it never ran")
					}
					if finished {
						close(leave)
						<-s.finished
					}
				}
				if c.signal != "" {
					w.signal(c.signal)
				}
				require.NoError(t, c.do(w, giver))
				want := llm.ResultUnknown
				if finished {
					want = llm.ResultSuccess
				}
				require.Equal(t, c.entry, w.session().Newest.Kind)
				require.Equal(t, want, results(w.session())["c2-1"].Status)
				if !finished {
					close(leave)
					<-s.finished
				}
				close(s.goOn)
				require.NoError(t, <-over)
				require.Equal(t, c.entry, w.session().Newest.Kind)
				require.Equal(t, 1, w.effects.count("guarded"))
				w.checkAtRest()
			})
		}
	}
}

// Where more calls are given up than fit into one write, the rest is closed before
// the entry, and all of them with it.
func TestClosing_of_more_calls_than_fit_beside_the_entry(t *testing.T) {
	t.Parallel()
	const many = 120
	var list []string
	for n := range many {
		list = append(list, "line", fmt.Sprintf(`{"text":"%d"}`, n))
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls(list...)}}))
	w.start(w.process(), "go")
	f := w.dies(2)
	require.Equal(t, session.KindReplied, w.session().Newest.Kind, f.ops)
	w.clock.advance(time.Hour)
	w.signal(journal.SignalCancel)
	before := &storeHook{when: commits(session.KindCancelled)}
	closed := 0
	before.happens = func() { closed = len(w.items(store.KindTool)) }
	w.deliver(w.process(func(cfg *runtime.Config) { before.Store, cfg.Store = cfg.Store, before }), 3, journal.WakeStep)
	require.Equal(t, many-(store.MaxItems-4), closed)
	require.Equal(t, session.StatusCancelled, w.session().Status)
	require.Len(t, w.items(store.KindTool), many)
	require.Len(t, results(w.session()), many)
	w.checkAtRest()
}

// The same beside as many waits as a suspension opens, which the entry closes too.
func TestClosing_of_more_calls_than_fit_beside_the_waits(t *testing.T) {
	t.Parallel()
	const many = session.MaxWaits + 30
	var list []string
	for n := range many {
		list = append(list, "locate", fmt.Sprintf(`{"text":"%d"}`, n))
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls(list...)}, "message": {says("heard")}}, func(a *agent.Agent) { a.Policy.AbandonOnMessage = true }))
	p := w.process()
	w.run(p, "go")
	require.Len(t, w.waits(), session.MaxWaits)
	before := &storeHook{when: commits(session.KindResumed)}
	closed := 0
	before.happens = func() { closed = len(w.items(store.KindTool)) }
	verb := w.process(func(cfg *runtime.Config) { before.Store, cfg.Store = cfg.Store, before })
	_, err := resume(w, verb, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) {
		p.Message, p.IdempotencyKey = llm.TextParts("message"), "k"
	})
	require.NoError(t, err)
	require.Equal(t, many-(store.MaxItems-session.MaxWaits-1-4), closed, "as many as fit are closed with the entry")
	require.Len(t, w.items(store.KindTool), many)
	require.NoError(t, p.settle())
	require.Len(t, results(w.session()), many)
	require.Equal(t, "heard", w.session().Messages[len(w.session().Messages)-1].Text())
	w.checkAtRest()
}

// A worker that was frozen before its mark finds its call closed by who has the
// lease now and is about to say so: it stands back.
func TestClosing_is_told_by_the_owner_of_the_lease(t *testing.T) {
	t.Parallel()
	made := newEffects()
	lines := script{"go": {calls("line", `{"text":"1"}`), says("bye")}}
	w := newWorld(t, made, helper(made, lines)).withMarksApart()
	w.start(w.process(), "go")
	s, over := w.pausedAtMark(2)
	before := &storeHook{when: commits(session.KindStepped)}
	met := false
	before.happens = func() {
		met = true
		require.Empty(t, w.items(store.KindTool), "nothing is closed but with the entry, unless it does not fit")
		w.update(store.ToolItem(journal.ToolRecord{Call: "c2-1", State: journal.ToolClosed, At: w.clock.Now()}, 0))
		close(s.mark)
		require.NoError(t, <-over)
		require.Equal(t, session.KindReplied, w.session().Newest.Kind, "it stands back")
	}
	without := helper(made, lines, func(a *agent.Agent) { a.Tools = a.Tools[1:] })
	owner := w.process(withAgents(t, without), func(cfg *runtime.Config) { before.Store, cfg.Store = cfg.Store, before })
	w.deliver(owner, 3, journal.WakeStep)
	require.True(t, met)
	require.Equal(t, llm.ResultError, results(w.session())["c2-1"].Status, "there is no such tool, says who has the lease")
	require.NoError(t, w.process().settle())
	require.Empty(t, made.all())
	w.checkAtRest()
}

// A worker begins the step while the consumer of the dead letters reads the journal:
// a claim leaves HEAD's revision alone, and its task is not failed all the same.
func TestDeadLetter_leaves_a_worker_alone_that_has_just_begun(t *testing.T) {
	t.Parallel()
	w, p, _, _ := givingUps()["dead letter"].approved(t, func(context.Context) {})
	s := &storeHook{when: claimOrCommit}
	buries := w.process(func(cfg *runtime.Config) { s.Store, cfg.Store, cfg.MaxClaims = cfg.Store, s, 1 })
	next := w.session().Next()
	s.happens = func() { w.claimAs("begins", next) }
	d, err := buries.DeadLetter(context.Background(), w.wake(next, journal.WakeStep))
	require.NoError(t, err)
	require.Equal(t, 20*time.Second, d.Keep, "decided on when that lease has ended")
	require.Equal(t, session.StatusRunning, w.session().Status)
	require.Equal(t, "begins", w.head().Head.Lease.Owner)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 1, w.effects.count("guarded"))
	w.checkAtRest()
}

// A consumer of the dead letters whose entry cannot be written gives the step back.
func TestDeadLetter_gives_the_step_back_when_its_entry_cannot_be_written(t *testing.T) {
	t.Parallel()
	w, p, _, _ := givingUps()["dead letter"].approved(t, func(context.Context) {})
	down := &storeHook{Store: w.store, refuse: func(journal.Entry) bool { return true }}
	buries := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.MaxClaims = down, 1 })
	next := w.session().Next()
	_, err := buries.DeadLetter(context.Background(), w.wake(next, journal.WakeStep))
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Empty(t, w.head().Head.Lease.Owner)
	require.Zero(t, w.deliver(p, next, journal.WakeStep).Keep, "nobody waits for it")
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// A step that is done between the two reads of whoever gives the task up: the task is healthy.
func TestDeadLetter_of_a_session_that_moves_meanwhile(t *testing.T) {
	t.Parallel()
	w, p, _, _ := givingUps()["dead letter"].approved(t, func(context.Context) {})
	reads := 0
	s := &storeHook{when: func(c storeCall) bool {
		if readOfEntries(c) {
			reads++
		}
		return reads == 2
	}}
	buries := w.process(func(cfg *runtime.Config) { s.Store, cfg.Store, cfg.MaxClaims = cfg.Store, s, 1 })
	next := w.session().Next()
	met := false
	s.happens = func() { met = true; _, _ = p.Deliver(context.Background(), w.wake(next, journal.WakeStep)) }
	_, err := buries.DeadLetter(context.Background(), w.wake(next, journal.WakeStep))
	require.True(t, met)
	require.NoError(t, err)
	require.NotEqual(t, session.StatusFailed, w.session().Status)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}
