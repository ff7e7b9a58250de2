package runtime_test

import (
	"context"
	"fmt"
	"sync/atomic"
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

// stopping is a store that stops its worker around the renewals of its lease and
// the marks of its calls.
type stopping struct {
	store.Store
	beforeRenewal, afterRenewal, beforeMark, afterMark func(n int)
	renewals, marks                                    int
}

func (s *stopping) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if p.Mode != store.ClaimRenew {
		return s.Store.Claim(ctx, p)
	}
	s.renewals++
	at(s.beforeRenewal, s.renewals)
	defer func(n int) { at(s.afterRenewal, n) }(s.renewals)
	return s.Store.Claim(ctx, p)
}

func (s *stopping) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if items[0].Kind != store.KindTool || items[0].Tool.State != journal.ToolStarted {
		return s.Store.Update(ctx, key, items...)
	}
	s.marks++
	at(s.beforeMark, s.marks)
	defer func(n int) { at(s.afterMark, n) }(s.marks)
	return s.Store.Update(ctx, key, items...)
}

func at(do func(int), n int) {
	if do != nil {
		do(n)
	}
}

// crowd is a tool that may run again, and knows how many workers are in it.
type crowd struct {
	inside atomic.Int32
	most   atomic.Int32
	runs   atomic.Int32
	// timesOut says of the n-th run that it does not return in time.
	timesOut func(n int32) bool
	// probing is called by its probe.
	probing func()
	during  func(n int32)
}

const crowdTimeout = 20 * time.Millisecond

func (c *crowd) tool(policy session.UnknownPolicy) tool.Tool {
	spec := tool.Spec[textIn]{Name: "slow", OnUnknown: policy, Timeout: crowdTimeout}
	if policy == session.UnknownProbe {
		spec.Probe = func(context.Context, *tool.Call, textIn) (any, bool, error) {
			if c.probing != nil {
				c.probing()
			}
			return nil, false, nil
		}
	}
	return tool.Define(spec, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
		n := c.runs.Add(1)
		c.most.Store(max(c.most.Load(), c.inside.Add(1)))
		defer c.inside.Add(-1)
		if c.timesOut != nil && c.timesOut(n) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		if c.during != nil {
			c.during(n)
		}
		return "did", nil
	})
}

// takeOver lets whatever the first worker asked for lapse, and another worker take
// the session to its end. It returns how often the tool had run when that began.
func (w *world) takeOver(c *crowd) int32 {
	w.t.Helper()
	w.clock.advance(time.Hour)
	before := c.runs.Load()
	second := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
	_, err := second.Deliver(context.Background(), w.wake(w.session().Next(), journal.WakeStep))
	require.NoError(w.t, err)
	return before
}

func (c *crowd) world(t *testing.T, policy session.UnknownPolicy) *world {
	t.Helper()
	made := newEffects()
	return newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, c.tool(policy))
	}))
}

// A worker is stopped at each point between its mark and the start of a tool that
// may run again, for longer than its lease, and another one takes the call over:
// then the first does not start it.
func TestOvertaken_worker_does_not_start_a_tool_that_may_run_again(t *testing.T) {
	t.Parallel()
	for _, policy := range []session.UnknownPolicy{session.UnknownRetry, session.UnknownProbe} {
		for _, runs := range []int32{0, 1, 2} { // of the first worker before it is stopped: each times out
			for name, stop := range map[string]func(s *stopping, do func()){
				"before its mark":       func(s *stopping, do func()) { s.beforeMark = func(int) { do() } },
				"after its mark":        func(s *stopping, do func()) { s.afterMark = func(int) { do() } },
				"before its renewal":    func(s *stopping, do func()) { s.beforeRenewal = func(int) { do() } },
				"after its renewal":     func(s *stopping, do func()) { s.afterRenewal = func(int) { do() } },
				"after another renewal": func(s *stopping, do func()) { s.afterRenewal = func(int) { do() } },
				"its clock set back":    func(s *stopping, do func()) { s.afterRenewal = func(int) { do() } },
			} {
				if runs > 0 && (name == "before its mark" || name == "after its mark") {
					continue // it is marked once
				}
				t.Run(fmt.Sprintf("%s/after %d runs/%s", policy, runs, name), func(t *testing.T) {
					t.Parallel()
					c := &crowd{timesOut: func(n int32) bool { return n <= runs }}
					w := c.world(t, policy).withMarksApart()
					s := &stopping{Store: w.store}
					first := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery = s, time.Hour })
					slow := map[string]time.Duration{
						"after another renewal": 4 * time.Second, // longer than the grace, not so long that the lease lapses
						"its clock set back":    -4 * time.Second,
					}[name]
					stopped, before := false, int32(0)
					stop(s, func() {
						switch {
						case stopped || c.runs.Load() < runs:
						case slow != 0: // it asks again
							w.clock.advance(slow)
							slow = 0
						default:
							stopped = true
							before = w.takeOver(c)
						}
					})
					w.start(first, "go")
					_, err := first.Deliver(context.Background(), w.wake(2, journal.WakeStep))
					require.NoError(t, err)
					require.True(t, stopped)
					require.Equal(t, runs, before)
					require.Equal(t, runs+1, c.runs.Load(), "the second worker's run is the last")
					require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
					require.NoError(t, w.process().settle())
					require.Equal(t, session.StatusCompleted, w.session().Status)
					w.checkAtRest()
				})
			}
		}
	}
}

// A worker is stopped while it looks whether a call happened that somebody else had
// started: meanwhile another one has looked, and runs it.
func TestOvertaken_worker_does_not_start_what_it_has_probed_for(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} { // what timed out in its own hands, or was started by a worker that died
		t.Run(fmt.Sprintf("own=%v", own), func(t *testing.T) {
			t.Parallel()
			c := &crowd{timesOut: func(n int32) bool { return own && n == 1 }}
			w := c.world(t, session.UnknownProbe)
			seq := int64(2)
			if !own {
				w.start(w.process(), "go")
				f := w.dies(4)
				require.Equal(t, journal.ToolStarted, w.items(store.KindTool)[0].Tool.State, f.ops)
				w.clock.advance(time.Hour)
				seq = 3
			} else {
				w.start(w.process(), "go")
			}
			looked := false
			before := int32(-1)
			c.probing = func() {
				if looked {
					return
				}
				looked = true
				before = w.takeOver(c)
			}
			first := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
			_, err := first.Deliver(context.Background(), w.wake(seq, journal.WakeStep))
			require.NoError(t, err)
			require.True(t, looked)
			require.Equal(t, before+1, c.runs.Load())
			require.NoError(t, w.process().settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			w.checkAtRest()
		})
	}
}

// The mark is lost to a worker that has lost its lease: it stands back, and who has
// the lease tries again. Nobody waits for a call that neither of them runs.
func TestOvertaken_worker_takes_the_mark_from_the_owner_of_the_lease(t *testing.T) {
	t.Parallel()
	c := &crowd{}
	w := c.world(t, session.UnknownRetry)
	w.start(w.process(), "go")
	w.dies(4)
	w.clock.advance(time.Hour)

	atMark, goOn, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	late := &stopping{Store: w.store}
	late.beforeMark = func(n int) {
		if n == 2 { // the first is refused: the call is started
			close(atMark)
			<-goOn
		}
	}
	go func() {
		zombie := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery = late, time.Hour })
		_, err := zombie.Deliver(context.Background(), w.wake(3, journal.WakeStep))
		over <- err
	}()
	<-atMark
	w.clock.advance(time.Hour)
	s := &stopping{Store: w.store}
	s.beforeMark = func(n int) {
		if n == 2 {
			close(goOn)
			require.NoError(t, <-over)
			require.Zero(t, c.runs.Load(), "it has the mark and not the lease")
		}
	}
	owner := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery = s, time.Hour })
	_, err := owner.Deliver(context.Background(), w.wake(3, journal.WakeStep))
	require.NoError(t, err)
	require.EqualValues(t, 1, c.runs.Load())
	require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
	require.NoError(t, w.process().settle())
	w.checkAtRest()
}

// Two workers, the second of which runs the tool while the first is stopped after
// its renewal: they are never in it at once.
func TestOvertaken_worker_and_the_next_are_never_in_the_tool_at_once(t *testing.T) {
	t.Parallel()
	for _, policy := range []session.UnknownPolicy{session.UnknownRetry, session.UnknownProbe} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			inTool, leave := make(chan struct{}), make(chan struct{})
			c := &crowd{during: func(int32) { close(inTool); <-leave }}
			w := c.world(t, policy)
			s := &stopping{Store: w.store}
			first := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery, cfg.ToolGrace = s, time.Hour, time.Hour })
			over := make(chan error, 1)
			s.afterRenewal = func(n int) {
				if n > 1 {
					return
				}
				w.clock.advance(3 * time.Hour)
				second := w.process(func(cfg *runtime.Config) { cfg.WatchEvery, cfg.ToolGrace = time.Hour, time.Hour })
				go func() {
					_, err := second.Deliver(context.Background(), w.wake(3, journal.WakeStep))
					over <- err
				}()
				<-inTool
			}
			w.start(first, "go")
			_, err := first.Deliver(context.Background(), w.wake(2, journal.WakeStep))
			require.NoError(t, err)
			close(leave)
			require.NoError(t, <-over)
			require.EqualValues(t, 1, c.most.Load())
			require.EqualValues(t, 1, c.runs.Load())
		})
	}
}

// The worker before finishes between the question whose lease it is and the mark of
// who has it: then what it brought counts, and the call does not run again.
func TestOvertaken_worker_that_has_finished_after_all(t *testing.T) {
	t.Parallel()
	for _, policy := range []session.UnknownPolicy{session.UnknownRetry, session.UnknownProbe} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			c := &crowd{}
			w := c.world(t, policy)
			w.start(w.process(), "go")
			w.dies(4)
			w.clock.advance(time.Hour)
			s := &stopping{Store: w.store}
			s.beforeMark = func(n int) {
				if n < 2 { // the first is refused: the call is started
					return
				}
				item := w.items(store.KindTool)[0]
				item.Tool.State = journal.ToolFinished
				item.Tool.Result = &llm.ToolResult{CallID: "c2-1", Name: "slow", Status: llm.ResultSuccess, Output: []byte(`"before"`)}
				w.update(item)
			}
			second := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery = s, time.Hour })
			w.deliver(second, 3, journal.WakeStep)
			require.Zero(t, c.runs.Load())
			require.JSONEq(t, `"before"`, string(results(w.session())["c2-1"].Output), "in the same step")
			require.NoError(t, w.process().settle())
			w.checkAtRest()
		})
	}
}

// A worker that was overtaken while it was in the tool stands back when it returns:
// the call is the next one's, which is in the tool now.
func TestOvertaken_worker_that_returns_stands_back(t *testing.T) {
	t.Parallel()
	inTool, leave, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	c := &crowd{}
	w := c.world(t, session.UnknownRetry)
	patient := func(cfg *runtime.Config) { cfg.WatchEvery, cfg.ToolGrace = time.Hour, time.Hour }
	c.during = func(n int32) {
		if n == 2 {
			close(inTool)
			<-leave
			return
		}
		w.clock.advance(3 * time.Hour)
		second := w.process(patient)
		go func() {
			_, err := second.Deliver(context.Background(), w.wake(3, journal.WakeStep))
			over <- err
		}()
		<-inTool
	}
	first := w.process(patient)
	w.start(first, "go")
	require.Equal(t, acknowledged, w.deliver(first, 2, journal.WakeStep))
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds(), "the call is not its own any more")
	close(leave)
	require.NoError(t, <-over)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped}, w.kinds())
	require.NoError(t, w.process().settle())
	w.checkAtRest()
}

// A worker that has lost its lease before its mark asks for it when the mark is
// lost to who has it now, and leaves that worker's mark alone.
func TestOvertaken_worker_leaves_the_mark_of_the_owner_alone(t *testing.T) {
	t.Parallel()
	inTool, leave, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	c := &crowd{}
	w := c.world(t, session.UnknownRetry)
	w.start(w.process(), "go")
	w.dies(4)
	w.clock.advance(time.Hour)
	c.during = func(int32) { close(inTool); <-leave }
	patient := func(cfg *runtime.Config) { cfg.WatchEvery, cfg.ToolGrace = time.Hour, time.Hour }
	late := &stopping{Store: w.store}
	late.beforeMark = func(n int) {
		if n != 2 { // the first is refused: the call is started
			return
		}
		w.clock.advance(3 * time.Hour)
		owner := w.process(patient)
		go func() {
			_, err := owner.Deliver(context.Background(), w.wake(3, journal.WakeStep))
			over <- err
		}()
		<-inTool
	}
	zombie := w.process(patient, func(cfg *runtime.Config) { cfg.Store = late })
	require.Equal(t, acknowledged, w.deliver(zombie, 3, journal.WakeStep))
	close(leave)
	require.NoError(t, <-over)
	require.Equal(t, session.KindStepped, w.session().Newest.Kind, "%v", w.kinds())
	require.EqualValues(t, 1, c.runs.Load())
	require.NoError(t, w.process().settle())
	w.checkAtRest()
}
