package lambdafn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// sweep is the function of the schedule and of the dead letters.
type sweep struct {
	Config
	dead *records
}

// NewSweep returns the handler of the sweep function: an SQS event brings dead
// letters ([runtime.Runtime.DeadLetter]), an operator's own invocation sets and lifts
// halts, everything else is the schedule's ([runtime.Runtime.Sweep]).
func NewSweep(cfg Config) (Handler, error) {
	cfg, err := cfg.check()
	if err == nil && cfg.DeadLetters == nil {
		err = errors.New("lambdafn: DeadLetters is required")
	}
	if err != nil {
		return nil, err
	}
	h := &sweep{Config: cfg}
	h.dead = &records{Config: cfg, queue: cfg.DeadLetters, work: h.deadLetter}
	return h, nil
}

func (h *sweep) deadLetter(ctx context.Context, wake journal.Wake) (runtime.Disposition, error) {
	h.Log.WarnContext(ctx, "dead letter", "session", wake.ID, "tenant", wake.Tenant, "seq", wake.Seq, "kind", string(wake.Kind))
	return h.Runtime.DeadLetter(ctx, wake)
}

// sweptResult is what an invocation of the schedule answers.
type sweptResult struct {
	Resent    int `json:"resent"`
	Resumed   int `json:"resumed"`
	Expired   int `json:"expired"`
	Escalated int `json:"escalated"`
	Reminded  int `json:"reminded"`
	Cancelled int `json:"cancelled"`
	Removed   int `json:"removed"`
}

// Invoke sweeps, or works on the dead letters an SQS event brings.
func (h *sweep) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	var probe struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		} `json:"Records"`
		operation
	}
	if err := json.Unmarshal(raw, &probe); err == nil && probe.Records != nil {
		for i, r := range probe.Records {
			if r.EventSource != "aws:sqs" {
				return nil, fmt.Errorf("sweep: record %d is of %q: only the dead letters' queue and a schedule belong here", i+1, r.EventSource)
			}
		}
		return h.dead.Invoke(ctx, raw)
	} else if probe.Halt != nil || probe.Go != nil {
		return h.operate(ctx, probe.operation)
	}
	began := h.Now()
	soft, done := h.soften(ctx, workMargin)
	defer done()
	var swept runtime.SweepResult
	err := guard(func() (err error) {
		swept, err = h.Runtime.Sweep(soft)
		return err
	})
	log := h.Log.With("resent", swept.Resent, "resumed", swept.Resumed, "expired", swept.Expired, "escalated", swept.Escalated, "reminded", swept.Reminded, "cancelled", swept.Cancelled, "removed", swept.Removed, "ms", h.Now().Sub(began).Milliseconds())
	if err != nil {
		// What is left stays due, for the next minute's sweep; the error is for whoever watches.
		logFailure(ctx, log, "sweep not finished", err)
		return nil, fmt.Errorf("sweep: %w", err)
	}
	log.InfoContext(ctx, "swept")
	return json.Marshal(sweptResult{Resent: swept.Resent, Resumed: swept.Resumed, Expired: swept.Expired, Escalated: swept.Escalated, Reminded: swept.Reminded, Cancelled: swept.Cancelled, Removed: swept.Removed})
}
