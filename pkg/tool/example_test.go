package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

func ExampleDefine() {
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
	out, err := refund.Run(context.Background(), tool.NewCall(tool.CallConfig{IdempotencyKey: "k7"}), args)
	fmt.Println(string(out), err)
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
		reply, err := c.Ask(ctx, tool.Question{ID: "color", Text: "Which color?", Choices: []session.Choice{{ID: "red"}, {ID: "blue"}}})
		if err != nil {
			return "", err
		}
		return "painted it " + reply.Selected[0], nil
	})

	call := tool.NewCall(tool.CallConfig{})
	_, err := pick.Run(context.Background(), call, nil)
	fmt.Println(errors.Is(err, tool.ErrWaiting), call.Taken().Questions[0].Text)

	// Days later, in another process, the tool is run again from its top.
	asked := session.Wait{ID: "w2-1", Kind: session.WaitQuestion, Question: call.Taken().Questions[0].Session()}
	call = tool.NewCall(tool.CallConfig{Asked: []session.Wait{asked}, Replies: []session.Answer{
		{Wait: "w2-1", Kind: session.AnswerReply, QuestionID: "color", Selected: []string{"blue"}},
	}})
	out, err := pick.Run(context.Background(), call, nil)
	fmt.Println(string(out), err)
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

	memo := map[string]json.RawMessage{} // the runtime keeps it in the session's ledger
	remember := func(_ context.Context, key string, value json.RawMessage) error {
		memo[key] = value
		return nil
	}
	call := tool.NewCall(tool.CallConfig{Remember: remember})
	_, err := book.Run(context.Background(), call, nil)
	fmt.Println(errors.Is(err, tool.ErrWaiting))

	name := "Ada"
	out, err := book.Run(context.Background(), tool.NewCall(tool.CallConfig{
		Memo: memo, Remember: remember,
		Asked:   []session.Wait{{ID: "w3-1", Kind: session.WaitQuestion, Question: call.Taken().Questions[0].Session()}},
		Replies: []session.Answer{{Wait: "w3-1", Kind: session.AnswerReply, QuestionID: "name", Text: &name}},
	}), nil)
	fmt.Println(string(out), err)
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

	call := tool.NewCall(tool.CallConfig{})
	_, err := add.Run(context.Background(), call, json.RawMessage(`{"name": "tea"}`))
	fmt.Println(err)
	out, err := add.Run(context.Background(), call, json.RawMessage(`{"name": "cup"}`))
	fmt.Println(string(out), err)
	for _, op := range call.Taken().StateOps {
		fmt.Println(op.Op, op.Key, string(op.Value))
	}
	// Output:
	// <nil>
	// 2 <nil>
	// append cart {"name":"tea"}
	// append cart {"name":"cup"}
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
