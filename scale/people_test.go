package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The task of a session: twenty replies, two of which wait for a person.
const (
	replies = 20
	waitsOf = 2
)

type nothing struct{}

// agent plans what a session does: it looks things up, sometimes notes something
// down, and twice pays, which a person must approve.
func (w *world) agent() agent.Agent {
	effect := func(_ context.Context, c *tool.Call, _ nothing) (string, error) {
		w.effect(c.Session(), c.ID())
		return "done", nil
	}
	return agent.Agent{
		Name: "clerk",
		Planner: agent.PlannerFunc(func(ctx context.Context, v agent.View) (agent.Reply, error) {
			select { // the model thinks
			case <-time.After(w.chance.about(w.step, "step", v.Session.String())):
			case <-ctx.Done():
				return agent.Reply{}, context.Cause(ctx)
			}
			call := "look"
			switch v.Task.Step {
			case replies:
				return agent.Reply{Text: "done"}, nil
			case 7, 14:
				call = "pay"
			case 3, 10, 17:
				call = "note"
			}
			return agent.Reply{Calls: []agent.Call{{Name: call}}}, nil
		}),
		Tools: []tool.Tool{
			tool.Define(tool.Spec[nothing]{Name: "look", Effect: session.ReadOnly}, func(context.Context, *tool.Call, nothing) (string, error) { return "nothing new", nil }),
			tool.Define(tool.Spec[nothing]{Name: "note"}, effect),
			tool.Define(tool.Spec[nothing]{Name: "pay", Approve: tool.Always[nothing]}, effect),
		},
	}
}

// arrival is when a session begins.
type arrival struct {
	key session.Key
	at  time.Duration
}

// arrivals are spread over the day, and some of the huge tenant's come at once.
func (w *world) arrivals() []arrival {
	all := make([]arrival, 0, w.sessions)
	surging := w.surge
	for i := range w.sessions {
		a := arrival{key: session.Key{Tenant: huge, ID: fmt.Sprintf("s%d", i)}}
		if i%2 == 1 {
			a.key.Tenant = fmt.Sprintf("small-%d", i/2%w.tenants)
		}
		a.at = time.Duration(w.chance.of("arrives", a.key.ID) * float64(w.over))
		if a.key.Tenant == huge && surging > 0 {
			surging--
			a.at = w.surgeAt + time.Duration(w.chance.of("surges", a.key.ID)*float64(time.Minute))
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
	return all
}

var person = runtime.Caller{Who: "ann", From: "simulation"}

// people begin sessions.
func (w *world) people(ctx context.Context) {
	for _, a := range w.arrivals() {
		time.Sleep(a.at - time.Since(w.began))
		if ctx.Err() != nil {
			return
		}
		w.running.Go(func() {
			err := w.patiently("start "+a.key.ID, func(key string) error {
				_, err := w.api.Start(context.Background(), runtime.StartParams{
					Key: a.key, Agent: "clerk", Input: llm.TextParts("go"), Caller: person, IdempotencyKey: key,
				})
				return err
			})
			if err != nil {
				w.report.add("starts that told of a failure", 1)
			}
		})
	}
	w.running.Go(func() { // the last ones are still trying
		time.Sleep(5 * time.Minute)
		w.mu.Lock()
		w.arriving = false
		w.mu.Unlock()
	})
}

// patiently does what a client does: three more tries under the same key.
func (w *world) patiently(key string, do func(key string) error) error {
	var err error
	for pause := 2 * time.Second; pause < 32*time.Second; pause *= 2 {
		if err = do(key); err == nil || w.impatient {
			return err
		}
		time.Sleep(pause + w.chance.about(time.Second, "client", key))
	}
	return err
}

// answer approves what a session waits for. Who could not tell whether the answer was
// taken in looks again later.
func (w *world) answer(key session.Key) {
	ctx := context.Background()
	for {
		open := w.open(key)
		if len(open) == 0 {
			return
		}
		for _, wait := range open {
			yes := true
			w.mu.Lock()
			w.tracks[key].answeredAt = time.Now()
			w.mu.Unlock()
			err := w.patiently("answer "+key.ID+wait.ID, func(idempotency string) error {
				_, err := w.api.Submit(ctx, runtime.SubmitParams{
					Key: key, Caller: person, IdempotencyKey: idempotency,
					Answer: session.Answer{Wait: wait.ID, Kind: session.AnswerApproval, ToolCallID: wait.Call, ApprovalID: wait.Nonce, Approved: &yes},
				})
				return err
			})
			if err != nil {
				w.report.add("answers that told of a failure", 1)
			}
		}
		time.Sleep(time.Minute)
	}
}

// open returns the open waits of a session, as they are.
func (w *world) open(key session.Key) []session.Wait {
	var open []session.Wait
	for item, err := range w.under.Items(context.Background(), key, store.KindWait, "") {
		if err == nil && item.Wait.State == session.WaitOpen {
			open = append(open, item.Wait.Wait)
		}
	}
	return open
}
