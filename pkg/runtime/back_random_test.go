package runtime_test

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// Random ways back, retries, forks, answers and stops; the session is whole after each.
func TestGoingBack_at_random(t *testing.T) {
	t.Parallel()
	const from, n = 0, 30
	bad := map[string]int{}
	for seed := from; seed < from+n; seed++ {
		for _, hb := range []bool{false, true} {
			func() {
				rnd := rand.New(rand.NewSource(int64(seed)))
				made := newEffects()
				plan := script{
					"go":   {calls("line", `{"text":"1"}`), calls("line", `{"text":"2"}`, "deploy", `{"text":"3"}`, "deploy", `{"text":"4"}`), calls("pick", `{"text":"5"}`, "deploy", `{"text":"6"}`), fails(&llm.Error{Class: llm.ClassInvalid}), says("bye")},
					"more": {calls("note", `{"text":"n"}`, "locate", `{"text":"7"}`, "deploy", `{"text":"8"}`), needs("what?"), says("bye")},
				}
				w := newWorld(t, made, helper(made, plan, func(a *agent.Agent) { a.Policy.HoldBatch = hb; a.Policy.AbandonOnMessage = rnd.Intn(2) == 0 }))
				w.run(w.process(), "go")
				var trace []string
				fail := func(format string, args ...any) {
					m := fmt.Sprintf(format, args...)
					bad[m]++
					if bad[m] == 1 {
						t.Errorf("seed %d hold %v: %s\n  %v\n  %v", seed, hb, m, trace, w.kinds())
					}
				}
				for range 12 {
					p := w.process()
					ctx := context.Background()
					entries := w.journal()
					at := rnd.Intn(len(entries))
					var msg []llm.Part
					if rnd.Intn(3) == 0 {
						msg = llm.TextParts("more")
					}
					var err error
					var op string
					s := w.session()
					switch k := rnd.Intn(10); {
					case k < 3:
						op = fmt.Sprintf("back %d msg=%v", at+1, msg != nil)
						params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at+1), Message: msg, Caller: people}
						_, err = acknowledging(p, &params)
					case k < 4:
						op = "retry"
						params := runtime.BackParams{Key: w.key, Message: msg, FromStart: rnd.Intn(2) == 0, Caller: people}
						_, err = p.Retry(ctx, params)
						if codeOf(err) == runtime.CodeEffectsNotAcknowledged {
							params.Acknowledge = runtime.AsError(err).Effects.Digest
							_, err = p.Retry(ctx, params)
						}
					case k < 5:
						op = fmt.Sprintf("fork %d msg=%v", at+1, msg != nil)
						var f runtime.Forked
						f, err = p.Fork(ctx, runtime.ForkParams{Origin: w.key, Checkpoint: checkpointAt(w, at+1), Message: msg, Caller: people})
						if err == nil && rnd.Intn(2) == 0 {
							w.key = f.Key
							op += " and there"
						}
					case k < 8 && len(s.Waits) > 0:
						op = "answer"
						for _, record := range w.waits() {
							if record.State != session.WaitOpen {
								continue
							}
							a := yes()
							switch record.Wait.Kind {
							case session.WaitQuestion:
								a = session.Answer{Selected: []string{"red"}}
							case session.WaitClientTool:
								a = session.Answer{Result: []byte(`"here"`)}
							case session.WaitInput:
								a = session.Answer{Message: llm.TextParts("more")}
							case session.WaitApproval, session.WaitChild, session.WaitUnknown:
							}
							if rnd.Intn(4) == 0 && record.Wait.Kind == session.WaitApproval {
								a = no()
							}
							if _, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, a)}); err != nil {
								break
							}
							if rnd.Intn(3) == 0 {
								break
							}
						}
					case k < 9:
						kind := stops[rnd.Intn(3)]
						op = "stop " + string(kind)
						_, err = w.stop(p, kind)
					default:
						op = "continue"
						if s.Status.Ended() {
							op = "start"
							_, err = p.Start(ctx, runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
						} else {
							_, err = p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person})
						}
					}
					trace = append(trace, op+":"+string(codeOf(err)))
					if err != nil && codeOf(err) == "" {
						fail("%s: %v", op, err)
						return
					}
					if codeOf(err) == runtime.CodeInternal || codeOf(err) == runtime.CodeStoreUnavailable {
						fail("%s: %v", op, err)
						return
					}
					if rnd.Intn(3) > 0 {
						if err := w.process().settle(); err != nil {
							fail("settle: %v", err)
							return
						}
					} else {
						w.clock.advance(time.Minute)
					}
					s = w.session()
					seen := map[string]bool{}
					for _, id := range ids(s) {
						if seen[id] {
							fail("an id twice in the history")
						}
						seen[id] = true
					}
					open := map[string]bool{}
					for _, c := range s.Calls {
						open[c.ID] = true
					}
					for _, wt := range s.Waits {
						if wt.Call != "" && !open[wt.Call] {
							fail("a wait for a call that is not open")
						}
					}
					if s.Status.Ended() && len(s.Calls) > 0 {
						fail("ended with open calls")
					}
					if s.Status == session.StatusSuspended && len(s.Waits) == 0 {
						fail("suspended without waits")
					}
					folded, err := engine.Fold(w.key, w.journal())
					require.NoError(t, err)
					if !reflect.DeepEqual(asJSON(t, folded), asJSON(t, s)) {
						fail("folded step by step it is another one")
					}
				}
			}()
		}
	}
	t.Log(bad)
}
