package runtime_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
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
)

func sweepOf(t *testing.T, p *process) runtime.SweepResult {
	t.Helper()
	swept, err := p.Sweep(context.Background())
	require.NoError(t, err)
	return swept
}

func TestSweep_resends_with_a_stamp_and_a_backoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("bye")}}))
	p := w.process()
	w.start(p, "go")
	w.drain() // lost
	var sentAt []time.Duration
	began := w.clock.Now()
	for range 60 {
		w.clock.advance(15 * time.Second)
		if sweepOf(t, p).Resent == 1 {
			sentAt = append(sentAt, w.clock.Now().Sub(began))
			require.Equal(t, []journal.Wake{w.wake(2, journal.WakeStep)}, w.drain())
			require.Equal(t, len(sentAt), w.head().Head.Resent)
		}
		require.Zero(t, sweepOf(t, w.process()).Resent, "a second sweep finds the stamp")
	}
	require.Equal(t, []time.Duration{30 * time.Second, 90 * time.Second, 210 * time.Second, 450 * time.Second, 750 * time.Second}, sentAt, "a backlog is not multiplied")
	require.NoError(t, p.settle())
	require.Zero(t, w.head().Head.Resent)
	w.checkAtRest()
}

func TestSweep_leaves_alone_what_is_alive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: time.Hour})}}))
	p := w.process()
	w.start(p, "go")
	w.drain()
	w.clock.advance(29 * time.Second)
	require.Zero(t, sweepOf(t, p), "a recent entry")
	w.claimAs("elsewhere", 2)
	w.clock.advance(10 * time.Second)
	require.Zero(t, sweepOf(t, p), "a live lease")
	w.clock.advance(10 * time.Second)
	w.deliver(p, 2, journal.WakeStep)
	w.drain()
	w.clock.advance(30 * time.Minute)
	require.Zero(t, sweepOf(t, p), "a retry whose time has not come")
	w.clock.advance(time.Hour)
	require.Equal(t, runtime.SweepResult{Resent: 1}, sweepOf(t, p), "a retry that is longer than a queue delays")
}

func TestSweep_sends_the_resumption_that_never_came(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`)}}))
	p := w.process()
	w.run(p, "go")
	waits := w.waits()
	for i, record := range waits {
		out, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, yes())})
		require.NoError(t, err)
		require.Equal(t, []runtime.Continuation{runtime.ContinuationWaiting, runtime.ContinuationResumed}[i], out.Continuation)
	}
	require.Equal(t, []journal.Wake{w.wake(3, journal.WakeResume)}, w.drain()) // lost
	w.clock.advance(9 * time.Second)
	require.Zero(t, sweepOf(t, p), "its sender has a moment")
	w.clock.advance(2 * time.Second)
	require.Positive(t, sweepOf(t, p).Resumed)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.checkAtRest()
}

func TestSweep_with_an_answer_that_waits_for_its_sibling(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`)}}))
	p := w.process()
	w.run(p, "go")
	_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())})
	require.NoError(t, err)
	w.clock.advance(time.Hour)
	require.Zero(t, sweepOf(t, p))
	require.Empty(t, w.drain())
	require.Equal(t, session.StatusSuspended, w.session().Status)
}

func TestSweep_one_broken_session_does_not_hide_the_others(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("bye")}}))
	p := w.process()
	w.start(p, "go")
	healthy := w.another()
	healthy.start(healthy.process(), "go")
	w.drain()
	healthy.drain()
	w.clock.advance(time.Minute)
	broken := w.process(func(cfg *runtime.Config) { cfg.Store = brokenStore(w.store, w.key) })
	swept, err := broken.Sweep(context.Background())
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.Equal(t, 1, swept.Resent)
}

// moving is a store on which something happens before one of the sweep's reads.
type moving struct {
	store.Store
	beforeHead, beforeEntries, beforeWaits func()
}

func (m *moving) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if happens := m.beforeHead; kind == store.KindHead && happens != nil {
		m.beforeHead = nil
		happens()
	}
	if happens := m.beforeWaits; happens != nil && kind == store.KindWait && (id == "" || strings.HasSuffix(id, "*")) {
		m.beforeWaits = nil
		happens()
	}
	return m.Store.Items(ctx, key, kind, id)
}

func (m *moving) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	if happens := m.beforeEntries; happens != nil {
		m.beforeEntries = nil
		happens()
	}
	return m.Store.Entries(ctx, key, after)
}

func TestSweep_of_a_session_that_ends_meanwhile(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(m *moving, end func()){
		"before HEAD is read":        func(m *moving, end func()) { m.beforeHead = end },
		"before the journal is read": func(m *moving, end func()) { m.beforeEntries = end },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("bye")}}))
			p := w.process()
			w.start(p, "go")
			w.clock.advance(time.Minute)
			sweeper := w.process(func(cfg *runtime.Config) {
				m := &moving{Store: cfg.Store}
				at(m, func() {
					require.NoError(t, p.work())
					w.clock.advance(time.Minute) // its lease is over too
				})
				cfg.Store = m
			})
			require.Zero(t, sweepOf(t, sweeper).Resent)
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Nil(t, w.head().Head.Due, "nothing is due of what has ended")
			w.checkAtRest()
		})
	}
}

// brokenStore cannot read the journal of one session.
func brokenStore(s store.Store, of session.Key) store.Store {
	return &hook{Store: s, entries: func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
		if key != of {
			return s.Entries(ctx, key, after)
		}
		return unreadEntries(store.ErrCorrupt)
	}}
}

// findsNothing cannot search.
func findsNothing(s store.Store) store.Store {
	return &hook{Store: s, find: func(context.Context, store.FindParams) (store.Page, error) {
		return store.Page{}, store.ErrUnavailable
	}}
}

func TestSweep_of_a_store_that_does_not_answer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{}))
	p := w.process(func(cfg *runtime.Config) { cfg.Store = findsNothing(w.store) })
	_, err := p.Sweep(context.Background())
	require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
	_, err = p.Sessions(context.Background(), runtime.SessionsParams{Tenant: "default"})
	require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
	_, err = p.Inbox(context.Background(), runtime.InboxParams{Tenant: "default"})
	require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
}

// TestDeadLetter is the table of dead letters in docs/design/chain.md, row by row.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	lines := script{"go": {calls("line", `{"text":"1"}`), says("bye")}, "ask": {calls("deploy", `{"text":"1"}`)}}
	run := func(name string, f func(t *testing.T, w *world, p *process)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, lines))
			f(t, w, w.process())
		})
	}
	dead := func(w *world, p *process, seq int64, kind journal.WakeKind) runtime.Disposition {
		d, err := p.DeadLetter(context.Background(), w.wake(seq, kind))
		require.NoError(w.t, err)
		return d
	}
	run("no such session: dropped", func(t *testing.T, w *world, p *process) {
		require.Equal(t, acknowledged, dead(w, p, 2, journal.WakeStep))
	})
	run("ended, interrupted, suspended, k <= n: dropped", func(t *testing.T, w *world, p *process) {
		w.run(p, "ask")
		require.Equal(t, acknowledged, dead(w, p, 3, journal.WakeStep))
		require.Equal(t, acknowledged, dead(w, p, 3, journal.WakeResume), "something is open")
		require.Empty(t, w.drain())
		w = w.another()
		p = w.process()
		w.start(p, "go")
		require.Equal(t, acknowledged, dead(w, p, 1, journal.WakeStep))
		require.NoError(t, p.settle())
		require.Equal(t, acknowledged, dead(w, p, w.session().Next(), journal.WakeStep))
		require.Empty(t, w.drain())
	})
	run("suspended and all answered: dropped, and the sweep sends", func(t *testing.T, w *world, p *process) {
		w.run(p, "ask")
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		w.drain()
		require.Equal(t, acknowledged, dead(w, p, 3, journal.WakeResume))
		w.clock.advance(time.Minute)
		require.Empty(t, w.drain())
		require.Equal(t, 1, sweepOf(t, p).Resumed)
		require.Equal(t, []journal.Wake{w.wake(3, journal.WakeResume)}, w.drain())
	})
	run("lease live: left for later", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.claimAs("elsewhere", 2)
		require.Equal(t, runtime.Disposition{Keep: 20 * time.Second}, dead(w, p, 2, journal.WakeStep))
		require.Equal(t, session.StatusRunning, w.session().Status)
	})
	run("fewer than M claims died: sent afresh with a delay", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.drain()
		for claims := range 4 {
			w.claimAs("dying "+newID(), 2)
			w.clock.advance(20 * time.Second)
			require.Equal(t, acknowledged, dead(w, p, 2, journal.WakeStep))
			require.Empty(t, w.drain(), "claim %d", claims)
			w.clock.advance(30 * time.Second)
			require.Equal(t, []journal.Wake{w.wake(2, journal.WakeStep)}, w.drain())
		}
	})
	run("no claim at all, however often it was delivered: sent afresh", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.drain()
		for range 20 {
			dead(w, p, 2, journal.WakeStep)
		}
		require.Equal(t, session.StatusRunning, w.session().Status)
	})
	run("M claims died: failed, retryable, with a reason", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		f := &fuse{at: 5}
		_, _ = w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep)) // dead after its tool was started
		require.Equal(t, session.KindReplied, w.session().Newest.Kind, "%v", f.ops)
		for range 5 {
			w.clock.advance(20 * time.Second)
			w.claimAs("dying "+newID(), 3)
		}
		w.clock.advance(20 * time.Second)
		w.drain()
		require.Equal(t, acknowledged, dead(w, p, 3, journal.WakeStep))
		s := w.session()
		require.Equal(t, session.StatusFailed, s.Status)
		require.Equal(t, "step_died", s.Failure.Type)
		require.True(t, s.Failure.Retryable)
		require.Equal(t, llm.ResultUnknown, results(s)["c2-1"].Status, "it was started, so it is not said to have been cancelled")
		w.checkAtRest()
	})
	run("an hour of a program without the agent fails nobody", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		other, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "b", Planner: script{}}}})
		require.NoError(t, err)
		bad := w.process(func(cfg *runtime.Config) { cfg.Registry = other })
		for range 60 {
			_, err := bad.Deliver(context.Background(), w.wake(2, journal.WakeStep))
			require.Equal(t, runtime.CodeUnknownAgent, codeOf(err))
			w.clock.advance(time.Minute)
		}
		require.Equal(t, acknowledged, dead(w, bad, 2, journal.WakeStep))
		require.Equal(t, session.StatusRunning, w.session().Status)
		require.NoError(t, p.settle())
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
	run("nor does one death after it", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		other, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "b", Planner: script{}}}})
		require.NoError(t, err)
		bad := w.process(func(cfg *runtime.Config) { cfg.Registry = other })
		for range 10 {
			_, err := bad.Deliver(context.Background(), w.wake(2, journal.WakeStep))
			require.Equal(t, runtime.CodeUnknownAgent, codeOf(err))
		}
		for died := range 5 {
			require.Equal(t, session.StatusRunning, w.session().Status, "%d died", died)
			w.claimAs("dying "+newID(), 2)
			w.clock.advance(20 * time.Second)
			require.Equal(t, acknowledged, dead(w, p, 2, journal.WakeStep))
			w.drain()
		}
		require.Equal(t, session.StatusFailed, w.session().Status)
	})
	run("the queue of dead letters is worked on to its end", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		ctx := context.Background()
		require.NoError(t, w.dead.Send(ctx, w.wake(2, journal.WakeStep), w.wake(1, journal.WakeStep)))
		require.NoError(t, p.HandleDeadLetters(ctx))
		broken := w.process(func(cfg *runtime.Config) { cfg.Store = brokenStore(w.store, w.key) })
		require.NoError(t, w.dead.Send(ctx, w.wake(2, journal.WakeStep), journal.NewWake(session.Key{Tenant: "default", ID: "none"}, 2, journal.WakeStep)))
		require.ErrorIs(t, broken.HandleDeadLetters(ctx), store.ErrCorrupt)
		w.flush()
		w.clock.advance(2 * time.Minute)
		require.NoError(t, p.HandleDeadLetters(ctx), "what could not be worked on comes back, the others are gone")
	})
	// notStarted is a session whose workers died at a call they had not started.
	notStarted := func(w *world, p *process) {
		w.start(p, "go")
		f := &fuse{at: 4}
		_, _ = w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
		for range 6 {
			w.clock.advance(20 * time.Second)
			w.claimAs("dying "+newID(), 3)
		}
		w.clock.advance(20 * time.Second)
	}
	for _, after := range []bool{false, true} {
		run(fmt.Sprintf("M claims died, and the consumer at its entry (after %v): calls are closed with it", after), func(t *testing.T, w *world, p *process) {
			notStarted(w, p)
			g := &fuse{at: 2, after: after} // it has claimed the step
			_, err := w.fusedProcess(g, true, 1).DeadLetter(context.Background(), w.wake(3, journal.WakeStep))
			require.ErrorIs(t, err, errDied, "%v", g.ops)
			require.Equal(t, after, len(w.items(store.KindTool)) > 0, "nothing is closed by who could not say so")
			require.NoError(t, p.settle(), "the session goes on by itself")
			status, result, ran := session.StatusCompleted, llm.ResultSuccess, 1
			if after {
				status, result, ran = session.StatusFailed, llm.ResultCancelled, 0
			}
			require.Equal(t, status, w.session().Status)
			require.Equal(t, result, results(w.session())["c2-1"].Status)
			require.Equal(t, ran, w.effects.count("line 1"))
		})
	}
	run("a call was closed and nothing says so: it never runs, and who has the lease says so", func(t *testing.T, w *world, p *process) {
		notStarted(w, p)
		w.update(store.ToolItem(journal.ToolRecord{Call: "c2-1", State: journal.ToolClosed, Attempt: "somebody", At: w.clock.Now()}, 0))
		require.NoError(t, p.settle(), "the session goes on by itself")
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.Equal(t, llm.ResultCancelled, results(w.session())["c2-1"].Status)
		require.Zero(t, w.effects.count("line 1"))
	})
}

// TestResume_of_what_was_stored: the answers were only to be stored, and then somebody
// said go on. From then on the session goes on whatever becomes of the message: it
// was lost, it was received too often, or who wrote it down died before sending it.
func TestResume_of_what_was_stored(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, lost := range map[string]func(w *world, p *process){
		"dead letter": func(w *world, p *process) {
			_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person})
			require.NoError(w.t, err)
			wakes := w.drain()
			require.Len(w.t, wakes, 1)
			d, err := p.DeadLetter(ctx, wakes[0])
			require.NoError(w.t, err)
			require.Equal(w.t, acknowledged, d)
		},
		"died before it sent": func(w *world, _ *process) {
			_, err := w.fusedProcess(&fuse{at: 1, after: true}, true, 1).Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person})
			require.ErrorIs(w.t, err, errDied)
		},
		"twice at once": func(w *world, p *process) {
			cross := &storeHook{when: updateOf(store.KindWait), happens: func() {
				_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: people})
				require.NoError(w.t, err)
			}}
			_, err := w.process(func(cfg *runtime.Config) { cross.Store, cfg.Store = cfg.Store, cross }).Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person})
			require.NoError(w.t, err)
		},
	} {
		for _, held := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d of 2 held", name, held), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
				p := w.process()
				w.run(p, "go")
				for i, record := range w.waits() {
					_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, yes()), HoldResume: i >= 2-held})
					require.NoError(t, err)
				}
				w.clock.advance(time.Hour)
				sweepOf(t, p)
				require.Empty(t, w.drain(), "only stored")
				lost(w, p)
				w.drain()
				require.Equal(t, session.StatusSuspended, w.session().Status)
				for _, record := range w.waits() {
					require.False(t, record.Held || record.HeldLast, "nobody waits for a word any more")
				}
				w.clock.advance(time.Minute)
				require.NotZero(t, sweepOf(t, p).Resumed)
				require.NoError(t, p.settle())
				require.Equal(t, session.StatusCompleted, w.session().Status)
				w.checkAtRest()
			})
		}
	}
}

// TestSweep_acts_on_what_was_found_unread: a store may hand out what is due
// without its record.
func TestSweep_acts_on_what_was_found_unread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.Store = unread{cfg.Store} })
	w.start(p, "go")
	require.Len(t, w.drain(), 1, "the wake is lost")
	w.clock.advance(time.Minute)
	require.Equal(t, 1, sweepOf(t, p).Resent)
}

// unread finds no records, only where they are.
type unread struct{ store.Store }

func (u unread) Find(ctx context.Context, params store.FindParams) (store.Page, error) {
	page, err := u.Store.Find(ctx, params)
	for i, f := range page.Found {
		page.Found[i].Item = store.Item{Kind: f.Item.Kind, ID: f.Item.ID}
	}
	return page, err
}

func TestDeliver_does_nothing_for_a_session_that_was_deleted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made, planned := newEffects(), 0
	w := newWorld(t, made, helper(made, script{"go": {func(ctx context.Context, v agent.View) (agent.Reply, error) {
		planned++
		return calls("line", `{"text":"1"}`)(ctx, v)
	}}}))
	p := w.process()
	w.start(p, "go")
	w.claimAs("other", 2)
	require.Positive(t, w.deliver(p, 2, journal.WakeStep).Keep, "somebody else is at it; the session is in the cache now")
	w.clock.advance(time.Minute)
	require.NoError(t, w.store.Delete(ctx, w.key))
	for range 2 {
		d, err := p.Deliver(ctx, w.wake(2, journal.WakeStep))
		require.NoError(t, err)
		require.Zero(t, d.Keep)
	}
	require.Zero(t, planned, "nobody asks a model for it")
}

// TestSweep_costs_nothing_for_sessions_that_are_worked_on: every running session
// is due all the while, and there may be thousands.
func TestSweep_costs_nothing_for_sessions_that_are_worked_on(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("bye")}}))
	p := w.process()
	w.start(p, "go")
	w.clock.advance(time.Hour)
	w.claimAs("worker", 2)
	m := &moving{Store: w.store, beforeHead: func() { t.Error("HEAD was read") }, beforeEntries: func() { t.Error("the journal was read") }}
	sweeper := w.process(func(cfg *runtime.Config) { cfg.Store = m })
	require.Zero(t, sweepOf(t, sweeper).Resent)
	w.clock.advance(time.Minute)
	m.beforeHead, m.beforeEntries = nil, nil
	require.Equal(t, 1, sweepOf(t, sweeper).Resent, "its worker died")
}

// updates counts updates.
func updates(s store.Store, n *atomic.Int64) store.Store {
	return &hook{Store: s, update: func(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
		n.Add(1)
		return s.Update(ctx, key, items...)
	}}
}

func TestSweep_writes_nothing_while_a_person_thinks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())})
	require.NoError(t, err)
	var n atomic.Int64
	sweeper := w.process(func(cfg *runtime.Config) { cfg.Store = updates(cfg.Store, &n) })
	for range 100 {
		w.clock.advance(time.Minute)
		sweepOf(t, sweeper)
	}
	require.EqualValues(t, 1, n.Load(), "the first of two answers is looked at once")
	_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[1].Wait, yes())})
	require.NoError(t, err)
	require.Len(t, w.drain(), 1, "its message is lost")
	w.clock.advance(time.Minute)
	require.Equal(t, 1, sweepOf(t, sweeper).Resumed, "the last answer brings its own due")
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// Two sweeps that find a session at once send for it once.
func TestSweep_beside_another_sends_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
	p := w.process()
	w.start(p, "go")
	w.clock.advance(time.Minute)
	s := &storeHook{when: func(c storeCall) bool { return c.kind == store.KindHead && c.update != nil }}
	sweeper := w.process(func(cfg *runtime.Config) { s.Store, cfg.Store = cfg.Store, s })
	s.happens = func() { sweepOf(t, w.process()) }
	require.Zero(t, sweepOf(t, sweeper).Resent)
}
