package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

func checkpointAt(w *world, seq int) string {
	return w.journal()[seq-1].Checkpoint(w.key.ID).String()
}

func (w *world) back(p *process, seq int, acknowledge string) (runtime.Began, error) {
	return p.GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, seq), Acknowledge: acknowledge, Caller: people})
}

// suspendedAt returns the number of the first entry that suspended the session.
func (w *world) suspendedAt() int {
	for _, e := range w.journal() {
		if e.Kind == session.KindSuspended {
			return int(e.Seq)
		}
	}
	w.t.Fatal("it never waited")
	return 0
}

// What a checkpoint asked is asked anew: other ids, other nonces, and an answer given since counts
// for nothing. What the old waits were for can no longer be answered.
func TestBack_asks_anew(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	old := w.waits()
	_, err := w.answer(w.process(), 0)
	require.NoError(t, err)
	began, err := w.back(w.process(), w.suspendedAt(), "")
	require.NoError(t, err)
	require.EqualValues(t, 2, began.Task)
	require.Len(t, began.Open, 2)
	require.Zero(t, began.Effects.Count)
	s := w.session()
	require.Equal(t, session.StatusSuspended, s.Status)
	require.Len(t, s.Calls, 2)
	for i, wait := range began.Open {
		require.Equal(t, s.Calls[i].ID, wait.Call)
		require.NotEqual(t, old[i].Wait.ID, wait.ID)
		require.NotEqual(t, old[i].Wait.Nonce, wait.Nonce)
		require.NotEqual(t, old[i].Wait.Call, wait.Call)
		require.Equal(t, old[i].Wait.Digest, wait.Digest)
		require.Empty(t, s.Calls[i].Answers)
	}
	require.Empty(t, w.drain(), "nothing drives it on")
	_, err = w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(old[1].Wait, yes())})
	require.Error(t, err)
	for _, wait := range began.Open {
		_, err := w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait, yes())})
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	s = w.session()
	require.Equal(t, session.StatusCompleted, s.Status)
	w.checkPaired(s)
	require.Equal(t, 1, made.count("deploy 2"))
	require.Equal(t, 1, made.count("deploy 3"))
	require.Equal(t, 1, made.count("line 1"))
	w.checkAtRest()
}

// What was done after the checkpoint is listed first, and nothing happens before it is acknowledged.
// A call that is open at the checkpoint and has run is not asked again.
func TestBack_lists_effects(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	at := w.suspendedAt()
	for i := range 2 {
		_, err := w.answer(w.process(), i)
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	before := len(w.journal())
	_, err := w.back(w.process(), at, "")
	refused := runtime.AsError(err)
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, refused.Code, "%v", err)
	require.Equal(t, 2, refused.Effects.Count)
	for i, e := range refused.Effects.Items {
		require.Equal(t, "deploy", e.Tool)
		require.True(t, e.Kept, "%d", i)
		require.Equal(t, llm.ResultSuccess, e.Outcome)
	}
	_, err = w.back(w.process(), at, "another")
	require.ErrorContains(t, err, "is not what was acknowledged")
	require.Len(t, w.journal(), before)
	began, err := w.back(w.process(), at, refused.Effects.Digest)
	require.NoError(t, err)
	require.Equal(t, refused.Effects.Digest, began.Effects.Digest)
	require.Empty(t, began.Open)
	require.Len(t, w.journal(), before+1, "it is one entry")
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 1, made.count("deploy 2"))

	_, err = w.back(w.process(), 1, "")
	refused = runtime.AsError(err)
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, refused.Code)
	require.Equal(t, 3, refused.Effects.Count, "the line and the deploys")
	for _, e := range refused.Effects.Items {
		require.False(t, e.Kept)
	}
	_, err = w.back(w.process(), 1, refused.Effects.Digest)
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	s := w.session()
	require.Equal(t, session.StatusSuspended, s.Status, "a new decision of the model, through its approval")
	require.Equal(t, 2, made.count("line 1"))
	require.Equal(t, 1, made.count("deploy 2"))
	w.checkAtRest()
}

// A retry goes on from where the task failed and makes no call twice.
func TestRetry(t *testing.T) {
	t.Parallel()
	made := newEffects()
	plan := script{"go": {calls("line", `{"text":"1"}`), fails(&llm.Error{Class: llm.ClassInvalid}), says("bye")}}
	w := newWorld(t, made, helper(made, plan))
	w.run(w.process(), "go")
	require.Equal(t, session.StatusFailed, w.session().Status)
	_, err := w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people, IdempotencyKey: "k"})
	require.NoError(t, err)
	again, err := w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people, IdempotencyKey: "k"})
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.NoError(t, w.process().settle())
	require.Equal(t, 1, made.count("line 1"))
	w.checkPaired(w.session())
}

// A fork has its own waits; the origin still waits for its own.
func TestFork(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	before, waits := len(w.journal()), w.waits()
	forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Caller: people})
	require.NoError(t, err)
	require.Len(t, forked.Open, 2)
	require.NotEqual(t, waits[0].Wait.Nonce, forked.Open[0].Nonce)
	require.Len(t, w.journal(), before)
	require.Equal(t, asJSON(t, waits), asJSON(t, w.waits()))
	heads, err := w.process().Forks(context.Background(), w.key)
	require.NoError(t, err)
	require.Len(t, heads, 1)
	require.Equal(t, w.key.ID, heads[0].ForkedFrom.Session)
	_, err = w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Caller: people})
	require.Equal(t, runtime.CodeSessionExists, runtime.AsError(err).Code)
	for _, wait := range forked.Open {
		_, err := w.process().Submit(context.Background(), runtime.SubmitParams{Key: forked.Key, Caller: person, Answer: fill(wait, yes())})
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	require.Equal(t, 1, made.count("deploy 2"))
	require.Equal(t, session.StatusSuspended, w.session().Status)
}

// checkPaired holds that every call of a history has one result.
func (w *world) checkPaired(s *session.Session) {
	w.t.Helper()
	require.Empty(w.t, s.Calls)
	asked := 0
	for _, m := range s.Messages {
		asked += len(m.ToolCalls())
	}
	require.Len(w.t, results(s), asked)
}

// backPlaces are where a session can go back.
var backPlaces = map[string]func(t *testing.T, w *world){
	"waiting": stopPlaces["waiting"], "answered": stopPlaces["answered"], "held": stopPlaces["held"], "interrupted": stopPlaces["interrupted"],
	"completed": func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		for i := range 2 {
			_, err := w.answer(w.process(), i)
			require.NoError(t, err)
		}
		require.NoError(t, w.process().settle())
	},
	"cancelled": func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		_, err := w.stop(w.process(), runtime.SignalCancel)
		require.NoError(t, err)
	},
	"aborted": func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		_, err := w.stop(w.process(), runtime.SignalAbort)
		require.NoError(t, err)
	},
}

// goBack goes back to the suspension with what is listed acknowledged, as often as the list changes.
func (w *world) goBack(p *process) (runtime.Began, error) {
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people}
	return acknowledging(p, &params)
}

func acknowledging(p *process, params *runtime.BackParams) (began runtime.Began, err error) {
	for range 3 {
		if began, err = p.GoBack(context.Background(), *params); codeOf(err) != runtime.CodeEffectsNotAcknowledged {
			return began, err
		}
		params.Acknowledge = runtime.AsError(err).Effects.Digest
	}
	return began, err
}

// Whatever happens between any two calls of the verb, one of the two wins, no effect happens twice
// that nobody decided on again, and the session is whole.
func TestBack_crossed_everywhere(t *testing.T) {
	t.Parallel()
	crossings := map[string]func(w *world, p *process) error{
		"the last answers": func(w *world, p *process) error {
			for i := range w.waits() {
				if _, err := w.answer(p, i); err != nil && !stoppedCodes[codeOf(err)] {
					return err
				}
			}
			return p.work()
		},
		"another way back": func(w *world, p *process) error {
			_, err := w.goBack(p)
			return err
		},
		"cancel": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalCancel)
			return err
		},
		"abort": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalAbort)
			return err
		},
		"continue": func(w *world, p *process) error {
			_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person})
			if err != nil && codeOf(err) == "" {
				return err
			}
			return p.work()
		},
	}
	for name, place := range backPlaces {
		for what, crosses := range crossings {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				world := newWorld(t, made, helper(made, stopScript()))
				for at := 0; ; at++ {
					world = world.another()
					w := world
					place(t, w)
					calls := 0
					cross := &storeHook{when: func(storeCall) bool { calls++; return calls > at }}
					p := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
					cross.happens = func() { require.NoError(t, crosses(w, w.process())) }
					_, err := w.goBack(p)
					if err != nil {
						require.True(t, stoppedCodes[codeOf(err)], "%v", err)
					}
					w.clock.advance(time.Minute)
					require.NoError(t, w.process().settle(), "crossed at call %d", at)
					for what, n := range made.all() {
						require.Equal(t, 1, n, "crossed at call %d: %s", at, what)
					}
					w.checkNothingForgotten()
					if calls <= at {
						break
					}
				}
			})
		}
	}
}

// A process that goes back dies at any of its writes; who asked asks again.
func TestBack_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for name, place := range backPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			world := newWorld(t, made, helper(made, stopScript()))
			for at := 1; ; at++ {
				for _, after := range []bool{false, true} {
					world = world.another()
					w := world
					place(t, w)
					f := &fuse{at: at, after: after}
					params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people, IdempotencyKey: newID()}
					_, err := acknowledging(w.fusedProcess(f, true, 1), &params)
					if !f.blown() {
						require.NoError(t, err)
						return
					}
					w.clock.advance(time.Minute)
					began, err := acknowledging(w.process(), &params)
					require.NoError(t, err, "%v", f.ops)
					require.EqualValues(t, 2, began.Task, "%v", f.ops)
					require.NoError(t, w.process().settle())
					require.EqualValues(t, 2, w.session().Task, "it went back once: %v", f.ops)
					w.checkNothingForgotten()
				}
			}
		})
	}
}

// A process that forks dies at any of its writes; who asked asks again and gets one fork.
func TestFork_dies_after_every_write(t *testing.T) {
	t.Parallel()
	made := newEffects()
	world := newWorld(t, made, helper(made, stopScript()))
	for at := 1; ; at++ {
		for _, after := range []bool{false, true} {
			world = world.another()
			w := world
			w.run(w.process(), "go")
			f := &fuse{at: at, after: after}
			params := runtime.ForkParams{Origin: w.key, ID: w.key.ID + "-copy", Caller: people, IdempotencyKey: newID()}
			_, err := w.fusedProcess(f, true, 1).Fork(context.Background(), params)
			if !f.blown() {
				require.NoError(t, err)
				return
			}
			forked, err := w.process().Fork(context.Background(), params)
			require.NoError(t, err, "%v", f.ops)
			require.Len(t, forked.Open, 2)
			heads, err := w.process().Forks(context.Background(), w.key)
			require.NoError(t, err)
			require.Len(t, heads, 1)
		}
	}
}

func TestBack_refusals(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	back := func(p runtime.BackParams) error {
		p.Key, p.Caller = w.key, people
		_, err := w.process().GoBack(context.Background(), p)
		return err
	}
	require.Equal(t, runtime.CodeInvalidInput, codeOf(back(runtime.BackParams{})))
	w.start(w.process(), "go")
	require.Equal(t, runtime.CodeAlreadyRunning, codeOf(back(runtime.BackParams{Checkpoint: checkpointAt(w, 1)})))
	require.NoError(t, w.process().settle())
	require.Equal(t, runtime.CodeInvalidCheckpoint, codeOf(back(runtime.BackParams{Checkpoint: "x"})))
	other := session.Checkpoint{Session: w.key.ID, Seq: 1, Token: "guessed"}
	require.Equal(t, runtime.CodeCheckpointNotFound, codeOf(back(runtime.BackParams{Checkpoint: other.String()})))
	for _, e := range w.journal() {
		if e.Kind == session.KindReplied {
			require.Equal(t, runtime.CodeInvalidCheckpoint, codeOf(back(runtime.BackParams{Checkpoint: e.Checkpoint(w.key.ID).String()})))
		}
	}
	_, err := w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people})
	require.Equal(t, runtime.CodeNotResumable, codeOf(err))
	_, err = w.stop(w.process(), runtime.SignalAbort)
	require.NoError(t, err)
	_, err = w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people})
	require.Equal(t, runtime.CodeNotResumable, codeOf(err), "aborted is for good")
	require.NoError(t, back(runtime.BackParams{Checkpoint: checkpointAt(w, w.suspendedAt())}), "but one may go back")
}
