package lambdafn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// operation is what an operator invokes the sweep function with: one of both (docs/operate.md).
type operation struct {
	Halt *haltOperation `json:"halt"`
	Go   *haltOperation `json:"go"`
}

// haltOperation says whose steps are to stop, or to go on; empty is every tenant, every agent.
type haltOperation struct {
	Tenant string `json:"tenant"`
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
	// Who it is, in their own words: who may invoke the function is known to AWS alone.
	Who string `json:"who"`
}

func (o haltOperation) params() runtime.HaltParams {
	return runtime.HaltParams{Tenant: o.Tenant, Agent: o.Agent, Reason: o.Reason, Operator: true, Who: o.Who, From: "lambda"}
}

// operate halts steps, or lets them go on, for whoever may invoke this function.
func (h *sweep) operate(ctx context.Context, asked operation) ([]byte, error) {
	soft, done := h.soften(ctx, workMargin)
	defer done()
	if asked.Halt != nil && asked.Go != nil {
		return nil, errors.New("sweep: halt and go in one invocation: which of both?")
	}
	var out any
	err := guard(func() error {
		if asked.Halt != nil {
			halted, err := h.Runtime.Halt(soft, asked.Halt.params())
			out = client.Halted{Halt: halted.Halt, Already: halted.Already}
			return err
		}
		lifted, err := h.Runtime.Go(soft, asked.Go.params())
		out = client.Lifted{Lifted: append([]client.Halt{}, lifted.Halts...), Left: append([]client.Halt{}, lifted.Left...)}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	h.Log.InfoContext(ctx, "halts changed", "halt", asked.Halt != nil)
	return json.Marshal(out)
}
