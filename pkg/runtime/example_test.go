package runtime_test

import (
	"context"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/tool"
)

// A session that waits for a person: it is started, driven until it waits, approved, and
// driven to its end. Package app/embedded wires a runtime to a data file in one call.
func Example() {
	ctx := context.Background()
	type In struct {
		Version string `json:"version"`
	}
	deploy := tool.Define(tool.Spec[In]{
		Name: "deploy", Description: "Deploys a version.", Approve: tool.Always[In],
	}, func(_ context.Context, _ *tool.Call, in In) (string, error) { return "deployed " + in.Version, nil })
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "deployer", Tools: []tool.Tool{deploy},
		Planner: agent.Replies(
			agent.Reply{Calls: []agent.Call{{Name: "deploy", Arguments: In{Version: "1.4.0"}}}},
			agent.Reply{Text: "It is out."},
		),
	}}})
	must(err)
	db, err := sqlite.Open(ctx, sqlite.Config{Path: ":memory:"})
	must(err)
	defer db.Close() //nolint:errcheck // it is in memory
	r, err := runtime.New(runtime.Config{
		Registry: registry, Store: db.Store(), Queue: db.Queue(), DeadLetters: db.DeadLetters(),
		Owner: "example", Now: time.Now, NewID: app.NewID,
	})
	must(err)

	key := session.Key{Tenant: session.DefaultTenant, ID: "release"}
	_, err = r.Start(ctx, runtime.StartParams{Key: key, Agent: "deployer", Input: llm.TextParts("Deploy 1.4.0")})
	must(err)
	must(r.Drive(ctx, key, db.Queue().Only(key)))

	waits, err := r.Waits(ctx, key)
	must(err)
	shown := waits[0].Wait
	fmt.Println("waits for", shown.Kind, "of", shown.Tool, string(shown.Arguments))

	yes := true
	_, err = r.Submit(ctx, runtime.SubmitParams{
		Key:    key,
		Answer: session.Answer{Wait: shown.ID, Kind: session.AnswerApproval, ApprovalID: shown.Nonce, Approved: &yes},
		Caller: runtime.Caller{Who: "ana", From: "example"},
	})
	must(err)
	must(r.Drive(ctx, key, db.Queue().Only(key)))

	v, err := r.View(ctx, key)
	must(err)
	fmt.Println(v.Status, v.Text)
	// Output:
	// waits for approval of deploy {"version":"1.4.0"}
	// completed It is out.
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
