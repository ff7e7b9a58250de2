package runtime_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

func startParams(w *world, input, key string) runtime.StartParams {
	return runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts(input), Caller: person, IdempotencyKey: key}
}

func TestStart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	lines := script{"go": {says("one")}, "more": {says("two")}, "ask": {calls("deploy", `{"text":"1"}`)}, "broken": {fails(errDied)}}
	run := func(name string, f func(t *testing.T, w *world, p *process)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), lines))
			f(t, w, w.process())
		})
	}
	run("a new session is task 1, run 1", func(t *testing.T, w *world, p *process) {
		started, err := p.Start(ctx, startParams(w, "go", ""))
		require.NoError(t, err)
		require.Equal(t, w.key, started.Key)
		require.Equal(t, int64(1), started.Task)
		require.Equal(t, int64(1), started.Seq)
		s := w.session()
		require.Equal(t, s.Checkpoint().String(), started.Checkpoint)
		e := w.journal()[0]
		require.Equal(t, "ann", e.By)
		require.Equal(t, "a", e.Rules.Agent)
		require.Equal(t, []journal.Wake{w.wake(2, journal.WakeStep)}, w.drain())
		require.Equal(t, session.TriggerStart, w.items(store.KindRun)[0].Run.Trigger)
		require.Equal(t, "go", w.head().Head.Title)
	})
	run("an id of our making", func(t *testing.T, w *world, p *process) {
		params := startParams(w, "go", "")
		params.Key.ID = ""
		started, err := p.Start(ctx, params)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(started.Key.ID, "ses_"))
	})
	run("a next turn is a new task whose history is kept", func(t *testing.T, w *world, p *process) {
		w.run(p, "go")
		started, err := p.Start(ctx, runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
		require.NoError(t, err, "the agent may be left out")
		require.Equal(t, int64(2), started.Task)
		require.NoError(t, p.settle())
		s := w.session()
		require.Len(t, s.Messages, 4)
		require.Equal(t, int64(2), s.Run)
		require.Equal(t, session.DefaultLimits().Steps-1, s.Left().Steps, "limits belong to the task")
		w.checkAtRest()
	})
	run("refusals", func(t *testing.T, w *world, p *process) {
		refused := func(code runtime.Code, change func(*runtime.StartParams)) {
			t.Helper()
			params := startParams(w, "go", "")
			change(&params)
			_, err := p.Start(ctx, params)
			require.Equal(t, code, codeOf(err), "%v", err)
		}
		refused(runtime.CodeInvalidID, func(p *runtime.StartParams) { p.Key.ID = "no/id" })
		refused(runtime.CodeInvalidInput, func(p *runtime.StartParams) { p.Input = llm.TextParts(" \n") })
		refused(runtime.CodeInvalidInput, func(p *runtime.StartParams) { p.Input = llm.TextParts("\xff\xfe") })
		refused(runtime.CodeInputTooLarge, func(p *runtime.StartParams) { p.Input = llm.TextParts(strings.Repeat("x", 10<<20)) })
		refused(runtime.CodeInvalidInput, func(p *runtime.StartParams) { p.Agent = "" })
		for _, params := range []runtime.StartParams{{Agent: "a"}, {Input: llm.TextParts("go")}} {
			params.Key.Tenant = w.key.Tenant
			_, err := p.Start(ctx, params)
			require.Equal(t, runtime.CodeInvalidInput, codeOf(err), "%v", err)
			require.Empty(t, runtime.AsError(err).Session, "an id that nobody chose, of a session that there is not")
			params.Key = w.key
			_, err = p.Start(ctx, params)
			require.Equal(t, w.key.ID, runtime.AsError(err).Session)
		}
		refused(runtime.CodeUnknownAgent, func(p *runtime.StartParams) { p.Agent = "nobody" })
		_, err := p.Session(ctx, w.key)
		require.Equal(t, runtime.CodeSessionNotFound, codeOf(err), "nothing was written")
		w.start(p, "ask")
		refused(runtime.CodeAlreadyRunning, func(*runtime.StartParams) {})
		require.NoError(t, p.work())
		refused(runtime.CodeNotResumable, func(*runtime.StartParams) {})
		w.signal(journal.SignalInterrupt)
		_, err = w.submit(p, session.WaitApproval, no())
		require.NoError(t, err)
		require.NoError(t, p.work())
		require.Equal(t, session.StatusInterrupted, w.session().Status)
		refused(runtime.CodeNotResumable, func(*runtime.StartParams) {})
		w = w.another()
		p = w.process()
		w.run(p, "broken")
		require.Equal(t, session.StatusFailed, w.session().Status)
		refused(runtime.CodeNotResumable, func(*runtime.StartParams) {})
		w = w.another()
		p = w.process()
		w.run(p, "go")
		refused(runtime.CodeAgentMismatch, func(p *runtime.StartParams) { p.Agent = "b" })
	})
	run("a deleted id is never used again", func(t *testing.T, w *world, p *process) {
		w.run(p, "go")
		require.NoError(t, w.store.Delete(ctx, w.key))
		_, err := w.process().Start(ctx, startParams(w, "go", ""))
		require.Equal(t, runtime.CodeNotResumable, codeOf(err), "%v", err)
	})
}

func TestStart_idempotency(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("one")}}))
	p := w.process()
	first, err := p.Start(ctx, startParams(w, "go", "key"))
	require.NoError(t, err)
	require.False(t, first.Replayed)
	w.drain() // committed, not sent

	second, err := p.Start(ctx, startParams(w, "go", "key"))
	require.NoError(t, err)
	require.True(t, second.Replayed)
	second.Replayed = false
	require.Equal(t, first, second, "the first answer again")
	require.Equal(t, []journal.Wake{w.wake(2, journal.WakeStep)}, w.drain(), "a repeated request re-sends")
	require.Len(t, w.journal(), 1)

	_, err = p.Start(ctx, startParams(w, "other", "key"))
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
	require.Equal(t, runtime.ClassConflict, codeOf(err).Class())

	require.NoError(t, p.settle())
	_, err = p.Start(ctx, startParams(w, "go", "key"))
	require.NoError(t, err)
	require.Empty(t, w.drain(), "what has moved on needs no wake")

	w.clock.advance(25 * time.Hour)
	fresh, err := p.Start(ctx, startParams(w, "go", "key"))
	require.NoError(t, err)
	require.Equal(t, int64(2), fresh.Task, "the key is forgotten after a day")

	params := startParams(w, "go", "without an id")
	params.Key.ID = ""
	made, err := p.Start(ctx, params)
	require.NoError(t, err)
	again, err := p.Start(ctx, params)
	require.NoError(t, err)
	require.Equal(t, made.Key, again.Key)
}

func TestStart_sixty_four_at_once(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"without a key": "", "with the same key": "key"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("one")}}))
			var wg sync.WaitGroup
			var mu sync.Mutex
			codes := map[runtime.Code]int{}
			repeated := 0
			for range 64 {
				p := w.process()
				wg.Go(func() {
					started, err := p.Start(context.Background(), startParams(w, "go", key))
					mu.Lock()
					defer mu.Unlock()
					codes[codeOf(err)]++
					if started.Replayed {
						repeated++
					}
				})
			}
			wg.Wait()
			require.Len(t, w.journal(), 1)
			if key == "" {
				require.Equal(t, map[runtime.Code]int{"": 1, runtime.CodeAlreadyRunning: 63}, codes)
			} else {
				require.Equal(t, map[runtime.Code]int{"": 64}, codes)
				require.Equal(t, 63, repeated)
			}
			require.NoError(t, w.process().settle())
			require.Equal(t, []session.Kind{session.KindStarted, session.KindCompleted}, w.kinds())
		})
	}
}
