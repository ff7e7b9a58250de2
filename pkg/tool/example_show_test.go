package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/adjourn/adjourn/pkg/tool"
)

type orderRefund struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
}

func showRefund(in orderRefund) tool.Preview {
	return tool.Preview{
		Title: "Refund order " + in.Order, Risk: tool.RiskMedium,
		Money: &tool.Money{Amount: strconv.Itoa(in.Amount), Currency: "USD"},
		Links: []tool.Link{{Label: "the order", URL: "https://shop.example/orders/" + url.PathEscape(in.Order)}},
	}
}

// What a person is shown of a call, beside its arguments.
func ExampleSpec_show() {
	refund := tool.Define(tool.Spec[orderRefund]{
		Name: "refund", Approve: tool.Always[orderRefund], Show: showRefund,
	}, func(_ context.Context, _ *tool.Call, in orderRefund) (string, error) {
		return "refunded " + in.Order, nil
	})
	preview, shows, err := refund.Preview(json.RawMessage(`{"order":"A/17","amount":250}`))
	fmt.Println(shows, err, preview.Title, preview.Money.Amount, preview.Links[0].URL)
	// Output:
	// true <nil> Refund order A/17 250 https://shop.example/orders/A%2F17
}
