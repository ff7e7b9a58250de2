package runtime_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
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

// A checkpoint shows the session as it was, compared with another one: also across a way back.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("note", `{"text":"a"}`), calls("line", `{"text":"1"}`), says("bye")}, "other": {calls("note", `{"text":"b"}`), says("so")}}))
	w.run(w.process(), "go")
	noted, ended := checkpointAt(w, 2), checkpointAt(w, len(w.journal()))
	look := func(at, with string) runtime.Checkpoint {
		out, err := w.process().Checkpoint(context.Background(), w.key, at, with)
		require.NoError(t, err)
		return out
	}
	first := look(noted, "")
	require.EqualValues(t, 2, first.Entry.Seq)
	require.Len(t, first.Session.Messages, 3)
	require.Equal(t, map[string]json.RawMessage{"notes": json.RawMessage(`["a"]`)}, first.Session.State.Snapshot())
	require.Equal(t, 1, first.Effects.Count)
	require.Nil(t, first.Compared)

	later := look(ended, noted)
	require.Zero(t, later.Effects.Count)
	require.Equal(t, 3, later.Compared.Common)
	require.Empty(t, later.Compared.Removed)
	require.Len(t, later.Compared.Added, 3)
	require.Empty(t, later.Compared.State)

	_, err := acknowledging(w.process(), &runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Message: llm.TextParts("other"), Caller: people})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	elsewhere := look(checkpointAt(w, len(w.journal())), ended).Compared
	require.Equal(t, 1, elsewhere.Common)
	require.Len(t, elsewhere.Removed, 5)
	require.Len(t, elsewhere.Added, 4)
	require.Equal(t, []session.StateChange{{Op: "replace", Path: "/notes", Value: json.RawMessage(`["b"]`)}}, elsewhere.State)

	_, err = w.process().Checkpoint(context.Background(), w.key, noted, checkpointAt(w, 1)+"x")
	require.Equal(t, runtime.CodeInvalidCheckpoint, runtime.AsError(err).Code)
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

// crossed returns a process between whose calls of the store, before call at (from 0), something happens
// once; over says that the process made no such call.
func (w *world) crossed(at int, happens func()) (p *process, over func() bool) {
	calls := 0
	cross := &storeHook{when: func(storeCall) bool { calls++; return calls > at }, happens: happens}
	p = w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
	return p, func() bool { return calls <= at }
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
					p, over := w.crossed(at, func() { require.NoError(t, crosses(w, w.process())) })
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
					if over() {
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

// A message goes on where the checkpoint asked: what it asked is closed.
func TestBack_with_a_message(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Message: llm.TextParts("more"), Caller: people}
	began, err := w.process().GoBack(context.Background(), params)
	require.NoError(t, err)
	require.Empty(t, began.Open)
	require.NoError(t, w.process().settle())
	s := w.session()
	require.Equal(t, session.StatusCompleted, s.Status)
	w.checkPaired(s)
	require.Zero(t, made.count("deploy 2"))

	params.Checkpoint, params.Message = checkpointAt(w, len(w.journal())), nil
	_, err = w.process().GoBack(context.Background(), params)
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err), "it has ended there")
	params.Acknowledge = "nothing"
	params.Message = llm.TextParts("more")
	_, err = w.process().GoBack(context.Background(), params)
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, codeOf(err))
	require.ErrorContains(t, err, "there is nothing to acknowledge")
	params.Message = llm.TextParts("")
	_, err = w.process().GoBack(context.Background(), params)
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
}

// A call that was started and of which nobody knows what became of it is listed as unknown, and is
// not asked again.
func TestBack_unknown_outcome(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	stopPlaces["after a reply whose tool was started"](t, w)
	_, err := w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	last := len(w.journal())
	_, err = w.back(w.process(), last, "")
	listed := runtime.AsError(err)
	if listed != nil {
		require.Equal(t, runtime.CodeEffectsNotAcknowledged, listed.Code, "%v", err)
		_, err = w.back(w.process(), last, listed.Effects.Digest)
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	require.LessOrEqual(t, made.count("line 1"), 1)
	_, err = w.back(w.process(), 1, "")
	refused := runtime.AsError(err)
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, refused.Code, "%v", err)
	require.Equal(t, "line", refused.Effects.Items[0].Tool)
}

// From the start a task is done anew, and what it did is listed.
func TestRetry_from_the_start(t *testing.T) {
	t.Parallel()
	made := newEffects()
	plan := script{"go": {calls("line", `{"text":"1"}`), fails(&llm.Error{Class: llm.ClassInvalid}), says("bye")}}
	w := newWorld(t, made, helper(made, plan))
	w.run(w.process(), "go")
	params := runtime.BackParams{Key: w.key, FromStart: true, Caller: people}
	_, err := w.process().Retry(context.Background(), params)
	refused := runtime.AsError(err)
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, refused.Code, "%v", err)
	require.Equal(t, 1, refused.Effects.Count)
	params.Acknowledge = refused.Effects.Digest
	_, err = w.process().Retry(context.Background(), params)
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, 2, made.count("line 1"))
	params.Checkpoint = "both"
	_, err = w.process().Retry(context.Background(), params)
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
}

// A fork of what had ended rests until something is said; with a message it goes on.
func TestFork_of_what_had_ended(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	backPlaces["completed"](t, w)
	rests, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "rests", Caller: people})
	require.NoError(t, err)
	goesOn, err := w.process().Fork(context.Background(), runtime.ForkParams{
		Origin: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Message: llm.TextParts("more"), Caller: people,
	})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	view, err := w.process().View(context.Background(), rests.Key)
	require.NoError(t, err)
	require.Equal(t, session.StatusInterrupted, view.Status)
	view, err = w.process().View(context.Background(), goesOn.Key)
	require.NoError(t, err)
	require.Equal(t, session.StatusCompleted, view.Status)
	require.Equal(t, 1, made.count("deploy 2"))

	unknown := w.key
	unknown.ID = "nobody"
	_, err = w.process().Forks(context.Background(), unknown)
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
	_, err = w.process().Fork(context.Background(), runtime.ForkParams{Origin: unknown, Caller: people})
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
	_, err = w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, Checkpoint: "x", Caller: people})
	require.Equal(t, runtime.CodeInvalidCheckpoint, codeOf(err))
	_, err = w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, Message: llm.TextParts(""), Caller: people})
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
}

// failingRead is a store of which one read fails.
type failingRead struct {
	store.Store
	at int
}

func (f *failingRead) fails() bool { f.at--; return f.at == -1 }

func (f *failingRead) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if f.fails() {
		return func(yield func(store.Item, error) bool) { yield(store.Item{}, store.ErrUnavailable) }
	}
	return f.Store.Items(ctx, key, kind, id)
}

func (f *failingRead) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	if f.fails() {
		return func(yield func(journal.Entry, error) bool) { yield(journal.Entry{}, store.ErrUnavailable) }
	}
	return f.Store.Entries(ctx, key, after)
}

// Where a read fails nothing is done, and the caller is told so.
func TestBack_and_fork_where_the_store_cannot_be_read(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *world, p *process) error{
		"back": func(w *world, p *process) error {
			_, err := w.back(p, w.suspendedAt(), "")
			return err
		},
		"fork": func(w *world, p *process) error {
			_, err := p.Fork(context.Background(), runtime.ForkParams{Origin: w.key, Caller: people})
			return err
		},
		"forks": func(w *world, p *process) error {
			_, err := p.Forks(context.Background(), w.key)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.run(w.process(), "go")
			_, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, Caller: people})
			require.NoError(t, err)
			before := len(w.journal())
			for at := 0; ; at++ {
				failing := &failingRead{at: at}
				p := w.process(func(cfg *runtime.Config) { failing.Store = cfg.Store; cfg.Store = failing })
				err := do(w, p)
				if failing.at >= 0 {
					require.NoError(t, err)
					require.Greater(t, at, 1)
					return
				}
				require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err), "read %d: %v", at, err)
				require.Len(t, w.journal(), before, "read %d", at)
			}
		})
	}
}

// What is large is left out of the list of effects, and is part of its digest.
func TestBack_large_effects(t *testing.T) {
	t.Parallel()
	made := newEffects()
	large := strings.Repeat("x", 5<<10)
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"`+large+`"}`), says("bye")}}))
	w.run(w.process(), "go")
	_, err := w.back(w.process(), 1, "")
	refused := runtime.AsError(err)
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, refused.Code, "%v", err)
	require.Empty(t, refused.Effects.Items[0].Arguments)
	require.NotEmpty(t, refused.Effects.Digest)
}
