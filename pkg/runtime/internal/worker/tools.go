package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/ledger"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// callOutcome is what came of running one call.
type callOutcome struct {
	call   session.Call
	result *llm.ToolResult
	ops    []session.StateOp
	events []session.CustomEvent
	// waits the call opened; asking is its ledger, to be written with them.
	waits  []session.Wait
	asking *store.Item
	// runs of the tool's function, for the history.
	runs []journal.ToolRun
	// owed is its finish mark, to be written with the step's entry.
	owed *finishMark
	// again says that the tool timed out and its policy is to probe or to retry.
	again bool
	// err stops the step: the lease or the store is lost.
	err error
}

// explain puts beside the approvals of plans what a person is shown of them.
func (inv *invocation) explain(plans []engine.CallPlan, reply *llm.Message) {
	for i := len(inv.session.Messages) - 1; reply == nil && i >= 0; i-- { // it is committed, perhaps with results behind it
		if m := &inv.session.Messages[i]; m.Role == llm.RoleAssistant {
			reply = m
		}
	}
	toolrun.Explain(plans, reply, func(name string) (tool.Tool, bool) {
		return inv.cfg.Registry.Tool(inv.session.Rules.Agent, name)
	}, inv.budget.take)
}

// runAll runs ordinary calls in parallel, all from the same base state, and joins them.
func (inv *invocation) runAll(ctx context.Context, plans []engine.CallPlan, state *session.State) []callOutcome {
	outcomes := make([]callOutcome, len(plans))
	inv.running.Store(int32(len(plans))) //nolint:gosec // the calls of one reply
	if len(plans) == 1 {
		outcomes[0] = inv.run(ctx, plans[0], state)
		return outcomes
	}
	var wg sync.WaitGroup
	running := make(chan struct{}, inv.cfg.ToolsAtOnce) // each may hold a large result
	for i, p := range plans {
		running <- struct{}{}
		wg.Go(func() {
			defer func() { <-running }()
			defer inv.running.Add(-1)
			outcomes[i] = inv.run(ctx, p, state)
		})
	}
	wg.Wait()
	return outcomes
}

// run runs one call by its effect: a side effect under its ledger, at most once.
func (inv *invocation) run(ctx context.Context, p engine.CallPlan, state *session.State) callOutcome {
	out := callOutcome{call: p.Call}
	t, ok := inv.cfg.Registry.Tool(inv.session.Rules.Agent, p.Call.Name)
	if !ok { // planned as known a moment ago
		result := engine.Result(p.Call, llm.ResultError, "There is no such tool.")
		out.result = &result
		return out
	}
	if context.Cause(ctx) != nil {
		return out // the step stops: what stops it says what becomes of the call
	}
	book := inv.ledger(p.Call.ID)
	if p.Traits.Effect != session.SideEffect {
		if inv.recoverEarlier(ctx, p, book, &out) || out.err != nil {
			return out
		}
		if p.Traits.Effect == session.ReadOnly {
			book = nil
		}
		inv.execute(ctx, t, p, state, book, &out) // its ledger only holds what Once remembered
		return out
	}
	started, err := book.Start(ctx, false)
	if err == nil && !started {
		started, err = inv.recoverStarted(ctx, t, p, state, book, &out)
	}
	if errors.Is(err, ledger.ErrClosed) {
		inv.recoverClosed(ctx, p.Call, &out)
		return out
	}
	if err != nil || !started {
		out.err = err
		return out
	}
	inv.executeOnce(ctx, t, p, state, book, &out)
	for try := 1; out.again && out.err == nil; try++ {
		inv.afterTimeout(ctx, t, p, state, book, &out, try)
	}
	return out
}

// afterTimeout follows the policy of a tool that timed out: probe whether it took
// effect, or run it again.
func (inv *invocation) afterTimeout(ctx context.Context, t tool.Tool, p engine.CallPlan, state *session.State, book *ledger.Book, out *callOutcome, try int) {
	out.again = false
	run := p.Traits.OnUnknown == session.UnknownRetry
	if !run {
		if run, out.err = inv.probe(ctx, t, p, state, book, out); out.err != nil {
			return
		}
	}
	if run && try < toolrun.MaxTimeouts {
		inv.executeOnce(ctx, t, p, state, book, out)
		return
	}
	if run {
		result := toolrun.TimedOutAgain(p.Call, t.Timeout(), try)
		out.result = &result
	}
	if out.result != nil {
		out.err = inv.sessions.Bounded(ctx, func(ctx context.Context) error { return book.Finish(ctx, *out.result, nil, nil) })
	}
}

// executeOnce runs a call that this attempt has marked as started. A call that another worker may
// run again after the lease lapses is started only under a lease that outlives it: the lease was
// renewed for that, and by this worker's clock at most the grace has passed since the renewal was
// requested. A worker that was stopped in between renews again, and is refused if another worker
// has the lease. (Neither the mark nor the renewal is enough alone: the worker that has the lease
// may replace the mark.)
func (inv *invocation) executeOnce(ctx context.Context, t tool.Tool, p engine.CallPlan, state *session.State, book *ledger.Book, out *callOutcome) {
	if p.Traits.OnUnknown == session.UnknownRetry || p.Traits.OnUnknown == session.UnknownProbe {
		if out.err = inv.renewForStart(ctx, t.Timeout()); out.err != nil {
			return
		}
	}
	inv.execute(ctx, t, p, state, book, out)
}

// maxRenewals bounds how often a lease is renewed for one tool.
const maxRenewals = 8

// renewForStart is renewFor for a tool that starts now: it asks again until the answer
// has come within the grace.
func (inv *invocation) renewForStart(ctx context.Context, timeout time.Duration) error {
	for range maxRenewals {
		asked := inv.cfg.Now()
		if err := inv.renewFor(ctx, timeout); err != nil {
			return err
		}
		now := inv.cfg.Now()
		// A machine that was suspended shows it on one of its two clocks only.
		passed := max(now.Sub(asked), now.Round(0).Sub(asked.Round(0)))
		if passed <= inv.cfg.Grace && !now.Round(0).Before(asked.Round(0)) {
			return nil
		}
	}
	return fmt.Errorf("session %s: renew the lease for a tool: it takes longer than %s each time: %w", inv.key, inv.cfg.Grace, store.ErrUnavailable)
}

// renewFor makes the lease last longer than a tool that may be run again elsewhere
// once it lapses, by this worker's own clock.
func (inv *invocation) renewFor(ctx context.Context, timeout time.Duration) error {
	now := inv.cfg.Now()
	_, err := inv.cfg.Store.Claim(ctx, store.ClaimParams{
		Key: inv.key, Mode: store.ClaimRenew, Owner: inv.owner, Seq: inv.session.Next(), Now: now,
		Until: inv.lease.renewed(now, inv.cfg.Grace+timeout+inv.cfg.ToolGrace+inv.cfg.Lease),
	})
	if errors.Is(err, store.ErrLeaseHeld) {
		return errSuperseded
	}
	return err
}

func (inv *invocation) newCall(p engine.CallPlan, state *session.State, book *ledger.Book) *tool.Call {
	cfg := toolcall.Config[tool.Files]{
		Session: inv.key, Task: inv.session.Task, ID: p.Call.ID, Name: p.Call.Name,
		IdempotencyKey: fmt.Sprintf("%s.%s.%s", inv.key.Tenant, inv.key.ID, p.Call.FirstID()),
		State:          state, Asked: p.Call.Waits, Replies: p.Replies, Who: p.Traits.Who, Files: inv.cfg.Files, Log: inv.cfg.Log,
	}
	if book != nil {
		cfg.Memo, cfg.Remember = book.Record().Memo, book.Remember
	}
	return toolcall.New[tool.Call](cfg)
}

// toolReturn is what a tool's function returned.
type toolReturn struct {
	output json.RawMessage
	err    error
}

// execute calls the tool's function and makes an outcome of whatever it does:
// panics and timeouts are results, not crashes.
func (inv *invocation) execute(ctx context.Context, t tool.Tool, p engine.CallPlan, state *session.State, book *ledger.Book, out *callOutcome) {
	c := inv.newCall(p, state, book)
	runCtx, cancel := context.WithTimeout(ctx, t.Timeout())
	defer cancel()
	began := inv.cfg.Now()
	if err := toolrun.CheckDecided(t, p, began); err != nil {
		inv.conclude(ctx, runCtx, p, c, toolReturn{err: err}, book, out)
		if errors.Is(err, toolrun.ErrMismatch) {
			inv.tellMismatch(ctx, p, out)
		}
		return
	}
	done := make(chan toolReturn, 1)
	arguments := p.Arguments // alone: the goroutine would keep the whole plan
	go func() {
		output, err := t.Run(runCtx, c, arguments)
		done <- toolReturn{output, err}
	}()
	var got toolReturn
	select {
	case got = <-done:
	case <-runCtx.Done():
		// Nothing is killed by force: the tool sees its context end and has a moment to return.
		timer := time.NewTimer(inv.cfg.ToolGrace)
		defer timer.Stop()
		select {
		case got = <-done:
		case <-timer.C:
			got = toolReturn{err: runCtx.Err()}
		}
	}
	inv.recordRun(p, began, book, out)
	inv.conclude(ctx, runCtx, p, c, got, book, out)
}

// tellMismatch records that what was to be done is not what was shown to somebody.
func (inv *invocation) tellMismatch(ctx context.Context, p engine.CallPlan, out *callOutcome) {
	out.events = append(out.events, session.MismatchEvent(p.Call))
	inv.cfg.Log.WarnContext(ctx, "approval_mismatch", "session", inv.key.String(), "call", p.Call.ID, "tool", p.Call.Name)
}

// conclude turns what a tool returned into a result, waits, or an unknown outcome.
func (inv *invocation) conclude(ctx, runCtx context.Context, p engine.CallPlan, c *tool.Call, got toolReturn, book *ledger.Book, out *callOutcome) {
	taken := toolcall.Take[tool.Question](c)
	if book != nil {
		if out.err = book.Failure(); out.err != nil {
			return
		}
	}
	for _, q := range taken.Questions {
		out.waits = append(out.waits, toolrun.QuestionWait(p, q))
	}
	if size := waitsSize(out.waits); !inv.budget.take(size) {
		got, out.waits = toolReturn{err: fmt.Errorf("its questions have %d bytes and are too large to keep", size)}, nil
	}
	if len(out.waits) > 0 {
		if item, ok := inv.askingItem(p, book); ok {
			out.asking = &item
		}
		return
	}
	sideEffect := p.Traits.Effect == session.SideEffect
	var result llm.ToolResult
	switch {
	case got.err == nil:
		result = toolrun.Success(p.Call, got.output)
		out.ops, out.events = taken.StateOps, taken.Events
		if size := outcomeSize(got.output, out.ops, out.events); !inv.budget.take(size) {
			result, out.ops, out.events = tooLargeResult(p.Call, size, inv.cfg.StepBytes), nil, nil
		}
	case errors.Is(got.err, errSuperseded):
		out.err = errSuperseded
		return
	case runCtx.Err() != nil && sideEffect:
		// It was cut off while it ran: the outcome is unknown, so never "failed".
		if inv.handleCutOff(ctx, p, out) {
			return
		}
		text := engine.TextUnknown
		if context.Cause(ctx) == nil {
			text = toolrun.TextTimedOut(inv.timeoutOf(p))
		}
		result = engine.Result(p.Call, llm.ResultUnknown, text)
	case context.Cause(ctx) != nil:
		result = engine.Result(p.Call, llm.ResultCancelled, engine.TextCancelled)
	case runCtx.Err() != nil:
		result = toolrun.TimedOut(p.Call, inv.timeoutOf(p))
	default:
		result = inv.errorResult(p.Call, got.err.Error())
	}
	out.result = &result
	if sideEffect && book != nil {
		inv.finished(ctx, &finishMark{book: book, result: result, ops: out.ops, events: out.events}, out)
	}
}

// handleCutOff leaves a side effect that was cut off to its tool's policy, unless the policy is
// to tell the model. The ledger continues to say that the call was started: if the step itself is
// cut off, the worker that repeats it finds that; after the tool's own timeout a person is asked,
// or the outcome stays open until the next claim.
func (inv *invocation) handleCutOff(ctx context.Context, p engine.CallPlan, out *callOutcome) bool {
	switch p.Traits.OnUnknown {
	case session.UnknownTell, "":
		return false
	case session.UnknownAsk:
		if context.Cause(ctx) == nil {
			_, wait := toolrun.AfterTimeout(p, inv.timeoutOf(p))
			out.waits = []session.Wait{*wait}
			return true
		}
	case session.UnknownProbe, session.UnknownRetry:
		if context.Cause(ctx) == nil {
			out.again = true
			return true
		}
	}
	out.err = context.Cause(ctx)
	return true
}

func (inv *invocation) timeoutOf(p engine.CallPlan) time.Duration {
	if t, ok := inv.cfg.Registry.Tool(inv.session.Rules.Agent, p.Call.Name); ok {
		return t.Timeout()
	}
	return 0
}

func (inv *invocation) askingItem(p engine.CallPlan, book *ledger.Book) (store.Item, bool) {
	if book == nil || p.Traits.Effect != session.SideEffect {
		return store.Item{}, false
	}
	return book.Asking()
}

// runsFirst reports whether a call runs in phase 1.
func runsFirst(p engine.CallPlan) bool { return p.Do == engine.DoRun && !p.Traits.Finish }

// needsReply reports whether a call may not run before its reply is committed.
func needsReply(p engine.CallPlan) bool {
	return p.Do == engine.DoRun && p.Traits.Effect != session.ReadOnly
}
