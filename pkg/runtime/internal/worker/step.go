package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/permissions"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// step does one step (docs/design/README.md): signals, limits, plan, tools, commit.
// It reports whether this invocation goes on with the next one.
func (inv *invocation) step(ctx context.Context) (more bool, err error) {
	inv.steps++
	inv.began, inv.mailSeen = inv.cfg.Now(), int64(len(inv.session.Mail))
	inv.notRun, inv.marked, inv.joins = nil, nil, false
	inv.budget.reset(inv.cfg.StepBytes)
	if signal := inv.signal(); signal != nil {
		return false, inv.obeySignal(ctx, *signal, engine.StepOutcome{}, nil)
	}
	definition, ok := inv.cfg.Registry.Agent(inv.session.Rules.Agent)
	if !ok {
		// An hour of a bad deployment must not fail a healthy session: the message comes
		// back. So it does where the agent is there and not offered.
		if inv.cfg.Registry.Withheld(inv.session.Rules.Agent) {
			return false, refusal.New(codes.UnknownAgent, inv.key, "%s. Nothing is lost: it goes on where it is offered", &agent.NotOfferedError{Name: inv.session.Rules.Agent})
		}
		return false, refusal.New(codes.UnknownAgent, inv.key, "its agent %q is not in this program. Nothing is lost: it goes on where the program runs that has it", inv.session.Rules.Agent)
	}
	stepCtx, stop := inv.watch(ctx)
	defer stop()
	var out engine.StepOutcome
	if len(inv.session.Calls) == 0 {
		done, err := inv.plan(stepCtx, definition, &out)
		if err != nil {
			return false, inv.handleStop(ctx, stepCtx, err, out, nil, stop)
		}
		if done {
			return false, nil
		}
	}
	asking, err := inv.calls(stepCtx, &out)
	if err == nil {
		err = context.Cause(stepCtx)
	}
	if err != nil {
		return false, inv.handleStop(ctx, stepCtx, err, out, asking, stop)
	}
	stop()
	return inv.close(ctx, out, asking)
}

// close commits the outcome of the step. If the task fails, the calls that have not run are
// closed. HEAD may have moved meanwhile: a signal is carried out; mail makes the task continue.
func (inv *invocation) close(ctx context.Context, out engine.StepOutcome, extra []store.Item) (more bool, err error) {
	defer func() { err = inv.finishOwed(ctx, err) }()
	keepsLease := inv.steps < inv.cfg.StepsPerInvocation && ctx.Err() == nil && inv.timeLeft(ctx)
	out.Used.Active = inv.active()
	for {
		owed := inv.owedItems()
		m, closed, err := inv.closing(ctx, out, keepsLease, len(extra)+len(owed))
		if err != nil {
			return false, errors.Join(err, inv.putAsking(ctx, extra))
		}
		err = inv.commit(ctx, m, slices.Concat(extra, closed, owed)...)
		if err == nil {
			inv.owed = nil
			return m.Entry.KeepsLease, nil
		}
		if errors.Is(err, errLost) {
			return false, err
		}
		if errors.Is(err, errLedgerMoved) {
			if err = inv.reloadLedgers(ctx); err == nil {
				continue
			}
		}
		if !errors.Is(err, stored.ErrHeadMoved) {
			return false, errors.Join(err, inv.putAsking(ctx, extra))
		}
		if signal := inv.signal(); signal != nil {
			return false, inv.obeySignal(ctx, *signal, out, extra)
		}
		if err := inv.takeLateMail(ctx, &out); err != nil {
			return false, errors.Join(err, inv.putAsking(ctx, extra))
		}
	}
}

// closing is the move that ends the step, with the ledgers of the calls it gives up.
func (inv *invocation) closing(ctx context.Context, out engine.StepOutcome, keepsLease bool, beside int) (m engine.Move, closed []store.Item, err error) {
	if closed, err = inv.closeNotRun(ctx, &out, beside); err != nil {
		return m, nil, err
	}
	if out.Failure != nil {
		more, err := inv.closeOpenCalls(ctx, &out, beside+len(closed))
		if err != nil {
			return m, nil, err
		}
		closed = append(closed, more...)
	}
	cutResults(&out, inv.cfg.StepBytes)
	return engine.Close(inv.session, out, inv.stamp(keepsLease)), closed, nil
}

// timeLeft reports whether another step may begin: while half of the time this
// invocation had is left. One that is cut off is done, and paid, again.
func (inv *invocation) timeLeft(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return true
	}
	now := inv.cfg.Now()
	return deadline.Sub(now) >= now.Sub(inv.since)
}

// active returns the time worked since the step, or its last entry, began: none where
// the clock was set back meanwhile, for what was used of a limit never shrinks.
func (inv *invocation) active() time.Duration {
	now := inv.cfg.Now()
	defer func() { inv.began = now }()
	return max(0, now.Sub(inv.began))
}

// plan asks the planner for the next reply. done means that the step ended
// without one: a limit, a failure, a retry later.
func (inv *invocation) plan(ctx context.Context, definition agent.Agent, out *engine.StepOutcome) (done bool, err error) {
	s := inv.session
	if expired := s.InputExpired; expired != nil {
		return true, inv.inputExpired(ctx, definition, *expired)
	}
	if limit := s.Exhausted(); limit != nil {
		_, err := inv.close(ctx, engine.StepOutcome{Failure: engine.LimitFailure(*limit, s.Rules)}, nil)
		return true, err
	}
	if err := inv.takeMail(ctx, out); err != nil {
		return false, err
	}
	began := inv.cfg.Now()
	reply, err := inv.ask(ctx, out.MailMessages)
	out.Used.Models = inv.modelCalls(began, reply, err)
	var message llm.Message
	if err == nil {
		message, err = reply.Message()
	}
	if err == nil {
		_, err = s.State.With(reply.StateOps)
	}
	if err == nil {
		err = inv.checkReplySize(message, reply.StateOps)
	}
	if err != nil {
		return true, inv.planFailed(ctx, definition, err, *out)
	}
	message = engine.WithCallIDs(message, s.Next())
	if limit := s.ExhaustedBy(len(message.ToolCalls())); limit != nil { // before any of them runs
		out.Reply, out.Failure = &message, engine.LimitFailure(*limit, s.Rules)
		out.Used.Usage, out.Used.CostMicros = reply.Usage, reply.CostMicros
		_, err := inv.close(ctx, *out, nil)
		return true, err
	}
	out.Reply, out.NeedsInput = &message, reply.NeedsInput || s.Rules.Policy.TextNeedsInput
	out.StateOps, out.InputExpiry = reply.StateOps, toolrun.Expiry(definition.InputExpiry)
	out.Used.Usage, out.Used.CostMicros = reply.Usage, reply.CostMicros
	return false, nil
}

// ask calls the planner.
func (inv *invocation) ask(ctx context.Context, mail []llm.Message) (agent.Reply, error) {
	s, w := inv.session, inv.Worker
	planner, err := w.planners.planner(ctx, s.Rules)
	if err != nil {
		return agent.Reply{}, err
	}
	state := s.State
	view := agent.View{
		Session: s.Key, Messages: s.Messages, State: &state, Attempt: s.Failures, Delays: s.Delays,
		Task: agent.Task{Number: s.Task, Step: s.Step, Agent: s.Rules.Agent, Model: s.Rules.Model, Left: s.Left()},
	}
	if len(mail) > 0 {
		view.Messages = slices.Concat(s.Messages, mail)
	}
	if w.cfg.OnDelta != nil {
		view.Watch = func(e llm.Event) { w.cfg.OnDelta(s.Key, e) }
	}
	return planner.Plan(ctx, view)
}

// planFailed puts the call off if it may go better later, or fails the task.
func (inv *invocation) planFailed(ctx context.Context, definition agent.Agent, cause error, out engine.StepOutcome) error {
	if err := context.Cause(ctx); err != nil {
		return err // stopped by a signal, a lost lease or the end of the program, not by the model
	}
	failure := session.Failure{Type: "planner_failed", Message: cause.Error(), Retryable: true}
	var hint time.Duration
	retry := false
	if modelErr := (*llm.Error)(nil); errors.As(cause, &modelErr) {
		failure.Type, failure.Retryable = "model_"+string(modelErr.Class), modelErr.Class != llm.ClassInvalid
		hint, retry = modelErr.RetryAfter, modelErr.Retryable()
	}
	failures := inv.session.Failures + 1
	if !retry || definition.Retry.GivesUp(failures) {
		out.Failure = &failure
		_, err := inv.close(ctx, out, nil)
		return err
	}
	out.Used.Active = inv.active()
	st := inv.stamp(false)
	until := st.Now.Add(definition.Retry.Delay(failures, hint))
	err := inv.commit(ctx, engine.Delayed(inv.session, failure, until, out.Used, st))
	if signal := inv.signal(); signal != nil && errors.Is(err, stored.ErrHeadMoved) {
		return inv.obeySignal(ctx, *signal, out, nil)
	}
	return err
}

// inputExpired handles an input wait without an answer: its outcome says whether a default
// message, the same question again, or a failure follows.
func (inv *invocation) inputExpired(ctx context.Context, definition agent.Agent, expired session.Answer) error {
	out := engine.StepOutcome{InputExpiry: toolrun.Expiry(definition.InputExpiry)}
	switch expired.Outcome {
	case session.ExpireReask:
		w := session.Wait{Kind: session.WaitInput, Text: stored.LastText(inv.session), Deadline: out.InputExpiry.Deadline(time.Time{})}
		out.Waits = []session.Wait{w}
	case session.ExpireDefault, session.ExpireDeny, session.ExpireFail:
		out.Failure = &session.Failure{Type: "wait_expired", Retryable: true, Message: "Nobody answered the agent's question before its deadline."}
	}
	_, err := inv.close(ctx, out, nil)
	return err
}

// takeMail takes in messages that came while nothing waited for them: as many as an
// entry may have of them, at least one. What is left keeps the task going, and the next
// step takes it.
func (inv *invocation) takeMail(ctx context.Context, out *engine.StepOutcome) error {
	if inv.head.Head == nil {
		return nil
	}
	count := inv.head.Head.MailCount
	if count > int64(len(inv.session.Mail)+len(out.Mail)) {
		mail, whole, err := inv.sessions.Mail(ctx, inv.session, out.Mail, inv.cfg.StepBytes/4)
		if err != nil {
			return err
		}
		for _, m := range mail {
			out.Mail, out.MailMessages, out.Requesters = append(out.Mail, m.ID), append(out.MailMessages, m.Message), append(out.Requesters, m.Who)
		}
		if !whole {
			count = int64(len(inv.session.Mail) + len(out.Mail))
		}
	}
	inv.mailSeen = count
	return nil
}

// takeLateMail takes in what has come since the step took its mail in, for the entry that ends the
// step. What is over an entry's share is left: for the next step, or, where the session rests, for
// the one it goes on with.
func (inv *invocation) takeLateMail(ctx context.Context, out *engine.StepOutcome) error {
	late := engine.StepOutcome{Mail: slices.Clip(out.Mail), Requesters: slices.Clip(out.Requesters)}
	if err := inv.takeMail(ctx, &late); err != nil {
		return err
	}
	out.LateMail, out.LateMailMessages, out.Requesters = late.Mail[len(out.Mail):], late.MailMessages, late.Requesters
	inv.mailSeen = inv.head.Head.MailCount
	return nil
}

// calls does what the open calls need: phase 1 runs ordinary tools side by side,
// phase 2 the finish tools one after the other on the state phase 1 left. It
// returns the ledgers of calls that asked a person, also with an error.
func (inv *invocation) calls(ctx context.Context, out *engine.StepOutcome) (asking []store.Item, err error) {
	digest, err := inv.planners.digest(inv.session.Rules)
	if err != nil {
		return nil, err
	}
	s := inv.withReply(out.Reply)
	allowed := permissions.Finder{
		Sessions: inv.sessions, Registry: inv.cfg.Registry, Session: s, Digest: digest, Requesters: slices.Concat(s.Requesters, out.Requesters), Now: inv.cfg.Now(),
	}
	plans := engine.Plan(s, digest, allowed.Traits(ctx, inv.traits))
	if allowed.Err != nil {
		return nil, allowed.Err
	}
	if out.Reply != nil && slices.ContainsFunc(plans, needsReply) {
		if err := inv.commitReply(ctx, out, plans); err != nil {
			return nil, err
		}
	}
	inv.explain(plans, out.Reply)
	base, err := inv.session.State.With(out.StateOps)
	if err != nil {
		return nil, err // checked when it was planned
	}
	outcomes, err := inv.settle(ctx, plans, out)
	if err != nil {
		return nil, err
	}
	if out.Failure != nil {
		// The task ends: nothing more runs, and nothing that has not run ever will.
		_, err := inv.gather(plans, outcomes, out)
		return nil, err
	}
	ordinary := slices.DeleteFunc(slices.Clone(plans), func(p engine.CallPlan) bool { return !runsFirst(p) })
	outcomes = append(outcomes, inv.runAll(ctx, ordinary, &base)...)
	if asking, err = inv.gather(plans, outcomes, out); err != nil {
		return asking, err
	}
	if engine.Pause(plans, out); len(out.Waits) == 0 {
		if asking, err = inv.runFinish(ctx, plans, out); err != nil {
			return asking, err
		}
	}
	return inv.splitAsking(ctx, asking)
}

// commitReply commits the reply before a tool with effects runs, and goes on. The store may write
// the start marks of the calls that run next along with it.
func (inv *invocation) commitReply(ctx context.Context, out *engine.StepOutcome, plans []engine.CallPlan) error {
	out.Used.Active = inv.active()
	books, marks := inv.startMarks(plans)
	of, err := inv.write(ctx, engine.Replied(inv.session, *out, inv.stamp(true)), marks, nil)
	inv.keepMarks(of, books, marks)
	if err != nil {
		return err
	}
	inv.joins = of == marked && !slices.ContainsFunc(plans, func(p engine.CallPlan) bool { return p.Do == engine.DoRun && p.Traits.Finish })
	*out = engine.StepOutcome{}
	inv.budget.reset(inv.cfg.StepBytes) // the reply has an entry of its own
	if err := inv.moveLease(ctx); err != nil {
		return err
	}
	if inv.signal() != nil {
		return errSignalled // before any of its tools runs
	}
	return nil
}

// runFinish is phase 2.
func (inv *invocation) runFinish(ctx context.Context, plans []engine.CallPlan, out *engine.StepOutcome) (asking []store.Item, err error) {
	for _, p := range plans {
		if p.Do != engine.DoRun || !p.Traits.Finish {
			continue
		}
		after, err := inv.session.State.With(out.StateOps)
		if err != nil {
			return asking, err
		}
		outcome := inv.run(ctx, p, &after)
		asked, err := inv.gather(plans, []callOutcome{outcome}, out)
		asking = append(asking, asked...)
		if err != nil {
			return asking, err
		}
		// As it was taken: a result whose changes of the state were too large is an error.
		if last := len(out.Results) - 1; outcome.result != nil && out.Results[last].Status == llm.ResultSuccess {
			out.Output = out.Results[last].Output
		}
	}
	if len(out.Waits) > 0 {
		out.Output = nil
	}
	return asking, nil
}

// splitAsking keeps a suspension within one transaction: ledgers of calls that asked go
// with it as far as there is room, and are written before it otherwise.
func (inv *invocation) splitAsking(ctx context.Context, asking []store.Item) ([]store.Item, error) {
	const room = store.MaxItems - session.MaxWaits - stored.BesideMove - 1 // the finish mark of another call
	if len(asking) <= room {
		return asking, nil
	}
	return asking[:room], inv.putAsking(ctx, asking[room:])
}

// putAsking writes ledgers of calls that asked a person. Such a call has
// returned, so that it may be started again whatever becomes of the step.
func (inv *invocation) putAsking(ctx context.Context, asking []store.Item) error {
	for _, item := range asking {
		err := inv.sessions.Bounded(ctx, func(ctx context.Context) error {
			_, err := inv.cfg.Store.Update(ctx, inv.key, item)
			return err
		})
		if err != nil && !errors.Is(err, store.ErrConflict) { // another worker has it already
			return fmt.Errorf("ledger of %s: %w", item.ID, err)
		}
	}
	return nil
}

// withReply is the session as it will be once the reply is committed, for planning its calls.
func (inv *invocation) withReply(reply *llm.Message) *session.Session {
	if reply == nil {
		return inv.session
	}
	s := *inv.session
	s.Calls = nil
	for _, c := range reply.ToolCalls() {
		s.Calls = append(s.Calls, session.Call{ID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Arguments: c.Arguments})
	}
	return &s
}

// settle does what needs no tool: results that are known, waits, failures. The ledger of a call
// that will not run is closed with the step's entry, so that the history never says "not run" of
// a call that runs later.
func (inv *invocation) settle(ctx context.Context, plans []engine.CallPlan, out *engine.StepOutcome) ([]callOutcome, error) {
	var outcomes []callOutcome
	for _, p := range plans {
		switch p.Do {
		case engine.DoResult, engine.DoWait:
			outcome := inv.settleOne(ctx, p)
			if outcome.err != nil {
				return nil, outcome.err
			}
			outcomes = append(outcomes, outcome)
		case engine.DoFail:
			out.Failure = p.Failure
		case engine.DoRun:
		}
	}
	return outcomes, nil
}

// gather collects what calls brought, state operations in the order of the calls,
// and returns the ledgers of those that asked. An error of one does not hide what
// the others did.
func (inv *invocation) gather(plans []engine.CallPlan, outcomes []callOutcome, out *engine.StepOutcome) (asking []store.Item, err error) {
	byCall := map[string]callOutcome{}
	for _, o := range outcomes {
		byCall[o.call.ID] = o
		if err == nil {
			err = o.err
		}
	}
	for _, p := range plans {
		o, ok := byCall[p.Call.ID]
		if !ok || o.err != nil {
			continue
		}
		inv.take(out, o)
		if o.owed != nil {
			inv.owed = o.owed
		}
		out.Waits = append(out.Waits, o.waits...)
		if o.asking != nil {
			asking = append(asking, *o.asking)
		}
	}
	return asking, err
}

// take adds what a call brought to the step's outcome. Its changes of the state and its
// events are there whole or not at all: several workers may each have finished calls
// with as much as fits. Results are cut later, see [cutResults].
func (inv *invocation) take(out *engine.StepOutcome, o callOutcome) {
	most := inv.cfg.StepBytes
	if size := outcomeSize(nil, o.ops, o.events); size > 0 && o.result != nil && size+outcomeSize(nil, out.StateOps, out.Events) > most {
		cut := cutResult(*o.result, size+len(o.result.Output), most)
		o.result, o.ops, o.events = &cut, nil, nil
	}
	if o.result != nil {
		out.Results = append(out.Results, *o.result)
	}
	if out.Used.Runs == nil {
		out.Used.Runs = slices.Clip(o.runs) // as a rule one call's are all
	} else {
		out.Used.Runs = append(out.Used.Runs, o.runs...)
	}
	out.StateOps = append(out.StateOps, o.ops...)
	out.Events = append(out.Events, o.events...)
}

// traits tells the engine about the tool of a call.
func (inv *invocation) traits(c session.Call, arguments json.RawMessage) engine.Traits {
	rules := inv.session.Rules
	t, ok := inv.cfg.Registry.Tool(rules.Agent, c.Name)
	if !ok || !slices.Contains(rules.Tools, c.Name) {
		return engine.Traits{}
	}
	return toolrun.Traits(t, arguments)
}
