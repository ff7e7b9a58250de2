package tooltest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/adjourn/adjourn/pkg/tool"
	"github.com/adjourn/adjourn/pkg/tool/tooltest"
)

type order struct {
	Number string `json:"number"`
	Amount int    `json:"amount"`
}

// refund asks for a reason; above 100 a person must approve it first.
var refund = tool.Define(tool.Spec[order]{Name: "refund", Approve: func(in order) bool { return in.Amount > 100 }},
	func(ctx context.Context, c *tool.Call, in order) (string, error) {
		id, err := tool.Once(ctx, c, "pay", func(context.Context) (string, error) { return "R-1", nil })
		if err != nil {
			return "", err
		}
		reply, err := c.Ask(ctx, tool.Question{ID: "reason", Text: "Why?"})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s of %d for %s: %s", id, in.Amount, in.Number, reply.Text), c.Append("refunds", id)
	})

func Example() {
	ctx, in := context.Background(), order{Number: "A-17", Amount: 250}

	got := tooltest.Run(ctx, refund, in, tooltest.Call{})
	fmt.Println(errors.Is(got.Err, tooltest.ErrNotApproved), got.Runs)

	got = tooltest.Run(ctx, refund, in, tooltest.Call{Approved: true})
	fmt.Println(errors.Is(got.Err, tool.ErrWaiting), got.Open[0].Text, got.Runs)

	got = tooltest.Run(ctx, refund, in, tooltest.Call{
		Approved: true, Answers: map[string]tool.Reply{"reason": {Text: "it broke"}},
	})
	var text string
	fmt.Println(got.Decode(&text), text)
	fmt.Println(got.Runs, string(got.State["refunds"]), string(got.Once["pay"]))
	// Output:
	// true 0
	// true Why? 1
	// <nil> R-1 of 250 for A-17: it broke
	// 2 ["R-1"] "R-1"
}

// What follows a crash while the tool ran: its probe finds out whether the money moved.
func ExampleRun_crash() {
	paid := map[string]string{"order-1": "P-1"}
	pay := tool.Define(tool.Spec[order]{
		Name: "pay", OnUnknown: tool.UnknownProbe,
		Probe: func(_ context.Context, _ *tool.Call, in order) (any, bool, error) {
			id, happened := paid[in.Number]
			return id, happened, nil
		},
	}, func(_ context.Context, _ *tool.Call, in order) (string, error) {
		return "P-2", nil
	})
	for _, number := range []string{"order-1", "order-2"} {
		got := tooltest.Run(context.Background(), pay, order{Number: number}, tooltest.Call{CutOff: true})
		fmt.Println(number, got.Status, got.Text, got.Runs)
	}
	// Output:
	// order-1 success "P-1" 0
	// order-2 success "P-2" 1
}

// pay asks from which account, and keeps its payments in a file. Its probe looks there.
var pay = tool.Define(tool.Spec[order]{
	Name: "pay", Approve: func(in order) bool { return in.Amount > 100 },
	OnUnknown: tool.UnknownProbe,
	Probe: func(_ context.Context, c *tool.Call, _ order) (any, bool, error) {
		folder, err := c.Files().OpenFolder()
		if err != nil {
			return nil, false, err
		}
		account, err := folder.ReadFile(c.IdempotencyKey())
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, folder.Close() // it did not happen: the tool runs
		}
		return string(account), true, errors.Join(err, folder.Close())
	},
}, func(ctx context.Context, c *tool.Call, in order) (string, error) {
	reply, err := c.Ask(ctx, tool.Question{
		ID: "account", Text: fmt.Sprintf("Pay %d from which account?", in.Amount), Choices: []tool.Choice{{ID: "main"}, {ID: "reserve"}},
	})
	if err != nil {
		return "", err
	}
	folder, err := c.Files().OpenFolder()
	if err != nil {
		return "", err
	}
	account := reply.Selected[0]
	return account, errors.Join(folder.WriteFile(c.IdempotencyKey(), []byte(account), 0o600), folder.Close())
})

func ExampleRun_answersAndFiles() {
	ctx, in := context.Background(), order{Number: "A-17", Amount: 250}
	dir, err := os.MkdirTemp("", "pay") // in a test: t.TempDir()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	call := tooltest.Call{
		Approved: true,
		Answers:  map[string]tool.Reply{"account": {Selected: []string{"main"}}},
		Files:    tool.Files{Folder: dir},
		CutOff:   true, // a worker died while the tool ran, before it paid
	}
	got := tooltest.Run(ctx, pay, in, call)
	fmt.Println(got.Status, got.Text, got.Runs, got.Err) // twice: the question suspends the first run

	got = tooltest.Run(ctx, pay, in, tooltest.Call{Approved: true, Files: call.Files, CutOff: true}) // it died after it paid
	fmt.Println(got.Status, got.Text, got.Runs, got.Err)
	// Output:
	// success "main" 2 <nil>
	// success "main" 0 <nil>
}
