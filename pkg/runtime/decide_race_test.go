package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestDecide_crossing: Ann has looked and is about to write when somebody else
// decides. The first counts, and Ann changes nothing unless she means the same.
func TestDecide_crossing(t *testing.T) {
	t.Parallel()
	only := func(ids ...string) runtime.DecideParams { return runtime.DecideParams{Approve: ids} }
	all, none := runtime.DecideParams{ApproveAll: true}, runtime.DecideParams{RejectAll: true}
	for name, c := range map[string]struct {
		first, ann runtime.DecideParams
		runs       []string
		code       runtime.Code
	}{
		"each allows another call":     {only("w2-1"), only("w2-2"), []string{"deploy 1"}, runtime.CodeAlreadyAnswered},
		"the same, in other words":     {only("w2-1"), runtime.DecideParams{ApproveAll: true, Reject: []string{"w2-2", "w2-3"}}, []string{"deploy 1"}, ""},
		"all and all":                  {all, all, []string{"deploy 1", "deploy 2", "deploy 3"}, ""},
		"all after none":               {none, all, nil, runtime.CodeAlreadyAnswered},
		"none after all":               {all, none, []string{"deploy 1", "deploy 2", "deploy 3"}, runtime.CodeAlreadyAnswered},
		"one more than was allowed":    {only("w2-1"), only("w2-1", "w2-3"), []string{"deploy 1"}, runtime.CodeAlreadyAnswered},
		"one that is rejected unnamed": {only("w2-1", "w2-3"), only("w2-1"), []string{"deploy 1", "deploy 3"}, runtime.CodeAlreadyAnswered},
	} {
		for at := range 4 {
			pinned, wentOn := at&1 != 0, at&2 != 0
			t.Run(fmt.Sprintf("%s/at a checkpoint=%v/and the session went on=%v", name, pinned, wentOn), func(t *testing.T) {
				t.Parallel()
				c := c
				w, p := deciding(t)
				if pinned {
					c.ann.Checkpoint = w.session().Checkpoint().String()
				}
				cross := &storeHook{when: updateOf(store.KindWait)}
				ann := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
				var before []store.Item
				cross.happens = func() {
					c.first.Reason = "because"
					_, err := decide(w, p, c.first)
					require.NoError(t, err)
					if wentOn {
						require.NoError(t, p.settle())
					}
					before = withAnswer(w.items(store.KindWait))
				}
				c.ann.Reason = "because"
				out, err := decide(w, ann, c.ann)
				require.Equal(t, c.code, codeOf(err))
				require.Equal(t, c.code == "", out.Repeated)
				require.Equal(t, before, withAnswer(w.items(store.KindWait)), "nothing is hers, and what waits now she has not seen")
				require.NoError(t, p.settle())
				require.Len(t, w.effects.all(), len(c.runs))
				for _, ran := range c.runs {
					require.Equal(t, 1, w.effects.count(ran))
				}
			})
		}
	}
}

// TestDecide_same_decision_between_two_reads: Ann decides at a checkpoint what somebody else
// decides, and the session goes on, between any two reads of hers. It is no refusal, and
// nothing runs twice.
func TestDecide_same_decision_between_two_reads(t *testing.T) {
	t.Parallel()
	for nth := range 8 {
		for name, reads := range map[string]func(storeCall) bool{"of HEAD": readOf(store.KindHead), "of entries": readOfEntries, "of waits": readOf(store.KindWait)} {
			t.Run(fmt.Sprintf("read %d %s", nth, name), func(t *testing.T) {
				t.Parallel()
				w, p := deciding(t)
				before := 0
				cross := &storeHook{when: func(c storeCall) bool {
					if reads(c) {
						before++
					}
					return before > nth
				}}
				ann := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
				all := runtime.DecideParams{ApproveAll: true, Checkpoint: w.session().Checkpoint().String()}
				cross.happens = func() {
					_, err := decide(w, p, all)
					require.NoError(t, err)
					require.NoError(t, p.settle())
				}
				_, err := decide(w, ann, all)
				require.NoError(t, err)
				require.NoError(t, p.settle())
				for _, ran := range []string{"deploy 1", "deploy 2", "deploy 3"} {
					require.Equal(t, 1, w.effects.count(ran))
				}
			})
		}
	}
}

// TestDecide_crossing_an_answer to one of the approvals she has seen open.
func TestDecide_crossing_an_answer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call   string
		answer session.Answer
		code   runtime.Code
		ran    int
	}{
		"to what she approves, the same":   {"c2-1", yes(), "", 1},
		"to what she approves, another":    {"c2-1", no(), runtime.CodeAlreadyAnswered, 0},
		"to what she rejects, the same":    {"c2-2", no(), "", 1},
		"to what she rejects, another":     {"c2-2", yes(), runtime.CodeAlreadyAnswered, 0},
		"to what she leaves out, the same": {"c2-3", no(), "", 1},
		"to what she leaves out, another":  {"c2-3", yes(), runtime.CodeAlreadyAnswered, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := deciding(t)
			cross := &storeHook{when: updateOf(store.KindWait)}
			ann := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
			var before []store.Item
			cross.happens = func() {
				for _, record := range w.waits() {
					if record.Wait.Call == c.call {
						_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: people, Answer: fill(record.Wait, c.answer)})
						require.NoError(t, err)
					}
				}
				before = withAnswer(w.items(store.KindWait))
			}
			out, err := decide(w, ann, runtime.DecideParams{Approve: []string{"w2-1"}, Reject: []string{"w2-2"}})
			require.Equal(t, c.code, codeOf(err))
			require.False(t, out.Repeated)
			if c.code != "" {
				require.Equal(t, before, withAnswer(w.items(store.KindWait)), "nothing is hers")
			}
			require.NoError(t, p.settle())
			require.Equal(t, c.ran, w.effects.count("deploy 1"))
			for _, record := range w.waits() {
				if record.Wait.Call == c.call {
					require.Equal(t, people.Who, record.Answer.Who, "the first answer counts")
				} else if c.code == "" && record.State != session.WaitOpen { // the next one is
					require.Equal(t, person.Who, record.Answer.Who)
				}
			}
		})
	}
}

// unlucky is a store on which somebody is always first.
func unlucky(s store.Store, tries *int) store.Store {
	return &hook{Store: s, update: func(_ context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
		*tries++
		return nil, &store.ConflictError{Key: key, Item: &items[0]}
	}}
}

func TestDecide_gives_up_when_somebody_is_always_first(t *testing.T) {
	t.Parallel()
	w, _ := deciding(t)
	tries := 0
	p := w.process(func(cfg *runtime.Config) { cfg.Store = unlucky(cfg.Store, &tries) })
	_, err := decide(w, p, runtime.DecideParams{ApproveAll: true})
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, 8, tries)
}

// TestDecide_is_about_what_was_shown: between the reading of the session and that
// of its waits it goes on, and two approvals are opened that nobody has seen.
func TestDecide_is_about_what_was_shown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		params runtime.DecideParams
		pinned bool
		code   runtime.Code
		runs   int
	}{
		"all, at a checkpoint": {runtime.DecideParams{ApproveAll: true}, true, runtime.CodeNothingToDecide, 0},
		"none":                 {runtime.DecideParams{RejectAll: true}, false, runtime.CodeNothingToDecide, 0},
		"one, at a checkpoint": {runtime.DecideParams{Approve: []string{"w5-1"}}, true, runtime.CodeStaleCheckpoint, 0},
		"one by its name":      {runtime.DecideParams{Approve: []string{"w5-1"}}, false, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`), calls("deploy", `{"text":"2"}`, "deploy", `{"text":"3"}`), says("bye")}}))
			p := w.process()
			w.run(p, "go")
			params := c.params
			if c.pinned {
				params.Checkpoint = w.session().Checkpoint().String()
			}
			m, late := movingOn(w)
			m.beforeWaits = func() {
				_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`1`)})
				require.NoError(t, err)
				require.NoError(t, p.settle())
			}
			_, err := decide(w, late, params)
			require.Equal(t, c.code, codeOf(err))
			open := 0
			for _, record := range w.waits() {
				if record.State == session.WaitOpen {
					open++
				}
			}
			require.Equal(t, 2*(1-c.runs), open, "all or nothing")
			require.NoError(t, p.settle())
			require.Len(t, made.all(), c.runs)
		})
	}
}

// TestAnswer_beside_its_deadline: an answer came in time, and its repeat when the
// deadline had passed. It is told that it counts.
func TestAnswer_beside_its_deadline(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"submit", "decide"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
			try := func(p *process) (bool, error) {
				if verb == "decide" {
					out, err := decide(w, p, runtime.DecideParams{ApproveAll: true})
					return out.Repeated, err
				}
				out, err := w.submit(p, session.WaitApproval, yes())
				return out.Repeated, err
			}
			w.clock.advance(time.Hour)
			cross := &storeHook{when: updateOf(store.KindWait), happens: func() {
				w.clock.advance(-time.Second)
				repeated, err := try(p)
				require.NoError(t, err)
				require.False(t, repeated)
				w.clock.advance(time.Second)
			}}
			repeated, err := try(w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross }))
			require.NoError(t, err)
			require.True(t, repeated)
			require.NoError(t, p.settle())
			require.Equal(t, 1, w.effects.count("ran 1"))
		})
	}
}
