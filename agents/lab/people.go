package lab

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/pkg/tool"
)

// askAbove is the amount up to which nobody is asked about a refund.
const askAbove = 100

// DeployIn says what to deploy.
type DeployIn struct {
	Service string `json:"service" jsonschema:"what to deploy"`
	Version string `json:"version,omitempty" jsonschema:"which version of it"`
	Log     string `json:"log,omitempty" jsonschema:"a file of the lab's folder to which a line is added when it happens"`
}

// RefundIn says what to pay back.
type RefundIn struct {
	Order  string  `json:"order" jsonschema:"the order"`
	Amount float64 `json:"amount" jsonschema:"how much; a person is asked above 100"`
	Log    string  `json:"log,omitempty" jsonschema:"a file of the lab's folder to which a line is added when it happens"`
}

// Receipt says that something pretended to happen.
type Receipt struct {
	// ID is the idempotency key of the call.
	ID   string `json:"id"`
	Done string `json:"done"`
}

// NoIn is for tools without arguments.
type NoIn struct{}

// LocateIn says what to locate.
type LocateIn struct {
	What string `json:"what,omitempty" jsonschema:"what to locate; the user if left out"`
}

func peopleTools() []tool.Tool {
	return []tool.Tool{
		tool.Define(tool.Spec[DeployIn]{
			Name: "deploy", Description: "Pretend to deploy a service. A person is always asked before.",
			Effect: tool.SideEffect, Approve: tool.Always[DeployIn],
			Show: func(in DeployIn) tool.Preview {
				return tool.Preview{Title: strings.TrimSpace("Pretend to deploy " + in.Service + " " + in.Version), Risk: tool.RiskMedium}
			},
		}, func(ctx context.Context, c *tool.Call, in DeployIn) (Receipt, error) {
			done := "deployed " + in.Service
			if in.Version != "" {
				done += " " + in.Version
			}
			return pretend(ctx, c, done, in.Log)
		}),
		tool.Define(tool.Spec[RefundIn]{
			Name: "refund", Description: "Pretend to refund an order. A person is asked before if the amount is above 100.",
			Effect: tool.SideEffect, Approve: func(in RefundIn) bool { return in.Amount > askAbove }, Standing: &tool.Standing{},
			Show: func(in RefundIn) tool.Preview {
				return tool.Preview{Title: "Pretend to refund order " + in.Order, Money: &tool.Money{Amount: strconv.FormatFloat(in.Amount, 'f', -1, 64), Currency: "USD"}}
			},
		}, func(ctx context.Context, c *tool.Call, in RefundIn) (Receipt, error) {
			return pretend(ctx, c, fmt.Sprintf("refunded %g for order %s", in.Amount, in.Order), in.Log)
		}),
		tool.Define(tool.Spec[NoIn]{
			Name: "pick_color", Description: "Ask a person for a color.", Effect: tool.ReadOnly,
		}, pickColor),
		tool.Define(tool.Spec[NoIn]{
			Name: "pick_toppings", Description: "Ask a person for the toppings of a pizza, none to all of them.", Effect: tool.ReadOnly,
		}, pickToppings),
		tool.Define(tool.Spec[NoIn]{
			Name: "get_name", Description: "Ask a person for their name.", Effect: tool.ReadOnly,
		}, getName),
		tool.DefineClient(tool.Spec[LocateIn]{
			Name: "locate", Description: "Say where something is. The user's own device answers.", Effect: tool.ReadOnly,
		}),
	}
}

// pretend does something visible and harmless: it returns a receipt, and adds a line to
// a file in which tests can count the effects.
func pretend(ctx context.Context, c *tool.Call, done, log string) (Receipt, error) {
	if log != "" {
		if err := write(ctx, c, log, done); err != nil {
			return Receipt{}, fmt.Errorf("%s: log: %w", c.Name(), err)
		}
	}
	return Receipt{ID: c.IdempotencyKey(), Done: done}, nil
}

// Color is a picked color.
type Color struct {
	Color string `json:"color"`
}

func pickColor(ctx context.Context, c *tool.Call, _ NoIn) (Color, error) {
	reply, err := c.Ask(ctx, tool.Question{
		ID: "color", Text: "Which color?", Choices: []tool.Choice{
			{ID: "red", Label: "Red"}, {ID: "green", Label: "Green"}, {ID: "blue", Label: "Blue"},
		},
	})
	if err != nil {
		return Color{}, err
	}
	return Color{Color: reply.Selected[0]}, nil
}

// Toppings are picked toppings.
type Toppings struct {
	Toppings []string `json:"toppings"`
}

func pickToppings(ctx context.Context, c *tool.Call, _ NoIn) (Toppings, error) {
	reply, err := c.Ask(ctx, tool.Question{
		ID: "toppings", Text: "Which toppings?", Multi: true, Choices: []tool.Choice{
			{ID: "cheese", Label: "Cheese"},
			{ID: "mushrooms", Label: "Mushrooms"},
			{ID: "olives", Label: "Olives"},
			{ID: "peppers", Label: "Peppers"},
		},
	})
	if err != nil {
		return Toppings{}, err
	}
	return Toppings{Toppings: append([]string{}, reply.Selected...)}, nil // none is [], not null
}

// Name is a given name.
type Name struct {
	Name string `json:"name"`
}

func getName(ctx context.Context, c *tool.Call, _ NoIn) (Name, error) {
	reply, err := c.Ask(ctx, tool.Question{ID: "name", Text: "What is your name?"})
	if err != nil {
		return Name{}, err
	}
	return Name{Name: reply.Text}, nil
}
