package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var everything = runtime.HaltParams{Operator: true, Who: "op", Reason: "it spends too much"}

// TestHalt_between_two_steps: a worker that drives several steps with one message stops between two of
// them; nothing is sent while the halt lasts, verbs are carried out, and afterwards the session goes on.
func TestHalt_between_two_steps(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), calls("line", `{"text":"2"}`), calls("line", `{"text":"3"}`), says("bye")}}))
	other, told := w.process(), 0
	p := w.process(func(cfg *runtime.Config) {
		cfg.StepsPerInvocation = 16
		cfg.OnHalt = func(_ session.Key, halt session.Halt) {
			require.Equal(t, "op", halt.Who)
			told++
		}
		cfg.OnEntry = func(_ session.Key, e runtime.Progress) {
			if e.Kind == session.KindStepped && made.count("line 1") == 1 && made.count("line 2") == 0 {
				_, err := other.Halt(context.Background(), everything)
				require.NoError(t, err)
				w.clock.advance(time.Second) // since it was read last
			}
		}
	})
	w.run(p, "go")
	require.Equal(t, map[string]int{"line 1": 1}, made.all())
	require.Positive(t, told)
	for range 10 {
		w.clock.advance(time.Minute)
		swept, err := p.Sweep(context.Background())
		require.NoError(t, err)
		require.Zero(t, swept)
		require.NoError(t, p.HandleDeadLetters(context.Background()))
		require.NoError(t, p.work())
	}
	require.Empty(t, w.drain())
	require.True(t, w.head().Head.Lease.Lapsed(w.clock.Now()))
	require.Zero(t, w.head().Head.Lease.Died)
	require.Equal(t, session.StatusRunning, w.session().Status)
	view, err := p.View(context.Background(), w.key)
	require.NoError(t, err)
	require.Equal(t, "it spends too much", view.Halted.Reason)
	lifted, err := other.Go(context.Background(), everything)
	require.NoError(t, err)
	require.Len(t, lifted.Halts, 1)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, map[string]int{"line 1": 1, "line 2": 1, "line 3": 1}, made.all())
	w.checkAtRest()
}

// TestHalt_verbs: what is started and answered is stored, and signals are obeyed.
func TestHalt_verbs(t *testing.T) {
	t.Parallel()
	ctx, made := context.Background(), newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.SendOnGo = true })
	w.run(p, "go")
	_, err := p.Halt(ctx, everything)
	require.NoError(t, err)
	yes := true
	submitted, err := w.submit(p, session.WaitApproval, session.Answer{Approved: &yes})
	require.NoError(t, err)
	require.Equal(t, runtime.ContinuationResumed, submitted.Continuation)
	require.NoError(t, p.work())
	for range 3 {
		w.clock.advance(time.Minute)
		_, err = p.Sweep(ctx)
		require.NoError(t, err)
		require.NoError(t, p.work())
	}
	require.Equal(t, session.StatusSuspended, w.session().Status)
	first := w.key
	w.key.ID = "s2"
	w.run(p, "go")
	require.Equal(t, []session.Kind{session.KindStarted}, w.kinds())
	stopped, err := p.Stop(ctx, runtime.StopParams{Key: w.key, Kind: runtime.SignalCancel, Caller: person})
	require.NoError(t, err)
	require.Equal(t, runtime.StopDone, stopped.Outcome)
	w.key = first
	_, err = p.Go(ctx, everything)
	require.NoError(t, err)
	w.clock.advance(2 * time.Second)
	require.NoError(t, p.work())
	require.Equal(t, session.StatusCompleted, w.session().Status, "without a sweep")
	require.Equal(t, 1, made.count("deploy 1"))
}

// TestHalt_unknown: where it cannot be read no step begins, and the message is kept.
func TestHalt_unknown(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
	p := w.process()
	w.start(p, "go")
	key := session.Key{Tenant: store.Everywhere}
	bad, err := w.store.Update(t.Context(), key, store.TenantItem(journal.TenantRecord{Name: "halts", Value: []byte(`[]`)}, 0))
	require.NoError(t, err)
	require.NoError(t, p.work())
	require.Empty(t, made.all())
	bad[0].TenantRecord.Value = []byte(`{}`)
	_, err = w.store.Update(t.Context(), key, bad[0])
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// TestHalt_crash: a process dies before or after each write of a halt, and of its end.
func TestHalt_crash(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, after := range []bool{false, true} {
		for at := 1; at <= 2; at++ {
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
			dying := func(do func(p *process) error) {
				if err := do(w.fusedProcess(&fuse{at: at, after: after}, false, 1, func(cfg *runtime.Config) { cfg.SendOnGo = true })); err != nil {
					require.NoError(t, do(w.process()))
				}
			}
			dying(func(p *process) error { _, err := p.Halt(ctx, everything); return err })
			p := w.process()
			w.run(p, "go")
			require.Empty(t, made.all())
			dying(func(p *process) error { _, err := p.Go(ctx, everything); return err })
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Equal(t, 1, made.count("line 1"))
		}
	}
}

// TestHalt_64_sessions: all stop between two steps, whatever scope holds them, and go on.
func TestHalt_64_sessions(t *testing.T) {
	t.Parallel()
	for name, halt := range map[string]runtime.HaltParams{
		"everything": everything, "tenant": {Tenant: session.DefaultTenant}, "agent": {Agent: "lab", Operator: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const sessions = 64
				b := setup(t, func(cfg *runtime.Config) { cfg.StepsPerInvocation, cfg.SendOnGo = 16, true })
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- b.Work(ctx, b.queue, runtime.WorkParams{Concurrency: sessions, SweepEvery: 15 * time.Second})
				}()
				key := func(i int) session.Key { return session.Key{Tenant: session.DefaultTenant, ID: fmt.Sprintf("s%d", i)} }
				for i := range sessions {
					_, err := b.Start(ctx, runtime.StartParams{Key: key(i), Agent: "lab", Caller: person, Input: llm.TextParts("[{repeat: 30, call: sleep, with: {seconds: 0.7}}, {say: done}]")})
					require.NoError(t, err)
				}
				versions := func() (all []int64, status map[session.Status]int) {
					status = map[session.Status]int{}
					for i := range sessions {
						s, err := b.Session(ctx, key(i))
						require.NoError(t, err)
						all = append(all, s.Version)
						status[s.Status]++
					}
					return all, status
				}
				time.Sleep(5 * time.Second)
				_, err := b.Halt(ctx, halt)
				require.NoError(t, err)
				time.Sleep(3 * time.Second) // two, and the step that had begun
				before, status := versions()
				require.Equal(t, map[session.Status]int{session.StatusRunning: sessions}, status)
				time.Sleep(10 * time.Minute)
				held, _ := versions()
				require.Equal(t, before, held)
				_, err = b.Go(ctx, halt)
				require.NoError(t, err)
				time.Sleep(time.Minute)
				_, status = versions()
				require.Equal(t, map[session.Status]int{session.StatusCompleted: sessions}, status)
				cancel()
				require.NoError(t, <-done)
			})
		})
	}
}

// TestHalt_on_and_off: no session is lost, however often it is halted while it works.
func TestHalt_on_and_off(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(cfg *runtime.Config) { cfg.StepsPerInvocation, cfg.SendOnGo = 3, true })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Work(ctx, b.queue, runtime.WorkParams{SweepEvery: 15 * time.Second}) }()
		for i := range 16 {
			_, err := b.Start(ctx, runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant, ID: fmt.Sprintf("s%d", i)}, Agent: "lab", Caller: person, Input: llm.TextParts("[{repeat: 20, call: sleep, with: {seconds: 0.1}}, {say: done}]")})
			require.NoError(t, err)
		}
		for i := range 50 {
			_, err := b.Halt(ctx, everything)
			require.NoError(t, err)
			time.Sleep(time.Duration(i*37%900) * time.Millisecond)
			_, err = b.Go(ctx, everything)
			require.NoError(t, err)
			time.Sleep(time.Duration(i*53%700) * time.Millisecond)
		}
		time.Sleep(10 * time.Minute)
		for i := range 16 {
			s, err := b.Session(ctx, session.Key{Tenant: session.DefaultTenant, ID: fmt.Sprintf("s%d", i)})
			require.NoError(t, err)
			require.Equal(t, session.StatusCompleted, s.Status)
		}
		cancel()
		require.NoError(t, <-done)
	})
}
