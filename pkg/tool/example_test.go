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
	call = tool.NewCall(tool.CallConfig{Replies: []session.Answer{
		{Kind: session.AnswerReply, QuestionID: "color", Selected: []string{"blue"}},
	}})
	out, err := pick.Run(context.Background(), call, nil)
	fmt.Println(string(out), err)
	// Output:
	// true Which color?
	// "painted it blue" <nil>
}
