package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/adjourn/adjourn/pkg/tool"
	"github.com/adjourn/adjourn/pkg/tool/tooltest"
)

func Example() {
	type In struct {
		Order  string `json:"order" jsonschema:"the order's number"`
		Amount int    `json:"amount" jsonschema:"in whole euros"`
	}
	type Out struct {
		Receipt string `json:"receipt"`
	}
	refund := tool.Define(tool.Spec[In]{
		Name: "refund", Description: "Refund an order.",
		Approve: func(in In) bool { return in.Amount > 100 },
	}, func(_ context.Context, c *tool.Call, in In) (Out, error) {
		return Out{Receipt: in.Order + " with key " + c.IdempotencyKey()}, nil
	})

	args := json.RawMessage(`{"order": "A1", "amount": 250}`)
	fmt.Println(refund.NeedsApproval(args))
	got := tooltest.Run(context.Background(), refund, args, tooltest.Call{Approved: true, IdempotencyKey: "k7"})
	fmt.Println(string(got.Output), got.Err)
	fmt.Println(refund.Validate(json.RawMessage(`{"amount": "much"}`)))
	// Output:
	// true
	// {"receipt":"A1 with key k7"} <nil>
	// The arguments of refund are not valid. Correct them and call it again:
	// - /amount: expected integer, got string
	// - /order: missing, but required: expected string (the order's number)
}

func ExampleCall_Ask() {
	pick := tool.Define(tool.Spec[struct{}]{Name: "pick_color"}, func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		reply, err := c.Ask(ctx, tool.Question{ID: "color", Text: "Which color?", Choices: []tool.Choice{{ID: "red"}, {ID: "blue"}}})
		if err != nil {
			return "", err
		}
		return "painted it " + reply.Selected[0], nil
	})

	got := tooltest.Run(context.Background(), pick, nil, tooltest.Call{})
	fmt.Println(errors.Is(got.Err, tool.ErrWaiting), got.Open[0].Text)

	// Days later, in another process, the tool is run again from its top.
	got = tooltest.Run(context.Background(), pick, nil, tooltest.Call{Answers: map[string]tool.Reply{"color": {Selected: []string{"blue"}}}})
	fmt.Println(string(got.Output), got.Err)
	// Output:
	// true Which color?
	// "painted it blue" <nil>
}

// What happened before a question is not done again when the tool is run again
// with the reply.
func ExampleOnce() {
	book := tool.Define(tool.Spec[struct{}]{Name: "book"}, func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		seat, err := tool.Once(ctx, c, "reserve", func(context.Context) (string, error) {
			fmt.Println("reserving a seat")
			return "12A", nil
		})
		if err != nil {
			return "", err
		}
		reply, err := c.Ask(ctx, tool.Question{ID: "name", Text: "Whose seat is " + seat + "?"})
		if err != nil {
			return "", err
		}
		return seat + " for " + reply.Text, nil
	})

	first := tooltest.Run(context.Background(), book, nil, tooltest.Call{})
	fmt.Println(errors.Is(first.Err, tool.ErrWaiting))

	got := tooltest.Run(context.Background(), book, nil, tooltest.Call{
		Once:    first.Once, // the runtime keeps it in the session's ledger
		Answers: map[string]tool.Reply{"name": {Text: "Ada"}},
	})
	fmt.Println(string(got.Output), got.Err)
	// Output:
	// reserving a seat
	// true
	// "12A for Ada" <nil>
}

// A tool reads the session's state and adds to it; what it added is seen by
// others once the step is committed.
func ExampleState() {
	type item struct {
		Name string `json:"name"`
	}
	add := tool.Define(tool.Spec[item]{Name: "add_to_cart"}, func(_ context.Context, c *tool.Call, in item) (int, error) {
		if err := c.Append("cart", in); err != nil {
			return 0, err
		}
		cart, _, err := tool.State[[]item](c, "cart")
		return len(cart), err
	})

	before := map[string]any{"cart": []item{{Name: "tea"}}}
	got := tooltest.Run(context.Background(), add, item{Name: "cup"}, tooltest.Call{State: before})
	fmt.Println(string(got.Output), got.Err)
	fmt.Println(string(got.State["cart"]))
	// Output:
	// 2 <nil>
	// [{"name":"tea"},{"name":"cup"}]
}

// A tool that runs where the user is: the session waits for its result.
func ExampleDefineClient() {
	type In struct {
		Accuracy int `json:"accuracy" jsonschema:"in meters"`
	}
	locate := tool.DefineClient(tool.Spec[In]{Name: "locate", Description: "Where the user is."})
	fmt.Println(locate.Client(), locate.Err())
	fmt.Println(locate.Validate(json.RawMessage(`{"accuracy": "good"}`)))
	// Output:
	// true <nil>
	// The arguments of locate are not valid. Correct them and call it again:
	// - /accuracy: expected integer, got string
}

// A tool that keeps a file of its own: the program names the folder, and no path leads
// out of it.
func ExampleFiles_OpenFolder() {
	type in struct {
		Text string `json:"text"`
	}
	save := tool.Define(tool.Spec[in]{Name: "save"}, func(_ context.Context, c *tool.Call, in in) (string, error) {
		root, err := c.Files().OpenFolder()
		if err != nil {
			return "", err
		}
		defer func() { _ = root.Close() }()
		return "notes.txt", root.WriteFile("notes.txt", []byte(in.Text), 0o600)
	})
	dir, err := os.MkdirTemp("", "notes")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files := tool.Files{Folder: filepath.Join(dir, "adjourn-files")}
	got := tooltest.Run(context.Background(), save, in{Text: "tea"}, tooltest.Call{Files: files})
	text, err := os.ReadFile(filepath.Join(files.Folder, "notes.txt"))
	fmt.Println(got.Text, string(text), err)
	// Output: "notes.txt" tea <nil>
}
