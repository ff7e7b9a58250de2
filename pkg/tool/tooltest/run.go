package tooltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// firstSession is the id of the session where the test names none.
const firstSession = "s1"

// run is one call on its way to a result. What it needs next is the engine's plan.
type run struct {
	t      tool.Tool
	c      Call
	call   session.Call // with its waits and answers
	edited json.RawMessage
	state  *session.State
	memo   map[string]json.RawMessage
	cutOff bool
	// decided says that the call's decision was taken, by the kind of its wait.
	decided map[session.WaitKind]bool
	result  Result
}

// prepare checks what a run begins with.
func prepare(t tool.Tool, args any, c Call) (*run, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	raw, err := encode(args)
	if err != nil {
		return nil, fmt.Errorf("the arguments of %s: %w", t.Name(), err)
	}
	in := session.Key{Tenant: session.DefaultTenant, ID: cmp.Or(c.Session, firstSession)}
	if err := in.Validate(); err != nil {
		return nil, fmt.Errorf("the Session of the call: %w", err)
	}
	if folder := c.Files.Folder; folder != "" && !filepath.IsAbs(folder) {
		return nil, fmt.Errorf("the folder %q of Files is not absolute: use t.TempDir()", folder)
	}
	r := &run{t: t, c: c, state: new(session.State), memo: maps.Clone(c.Once), decided: map[session.WaitKind]bool{}}
	if r.memo == nil {
		r.memo = map[string]json.RawMessage{}
	}
	if c.Edited != nil {
		if r.edited, err = encode(c.Edited); err != nil {
			return nil, fmt.Errorf("the edited arguments: %w", err)
		}
	}
	switch {
	case c.Approved && c.Rejected:
		return nil, errors.New("the call is both Approved and Rejected")
	case c.Edited != nil && !c.Approved:
		return nil, errors.New("edited arguments go with Approved")
	}
	for key, value := range c.State {
		text, err := encode(value)
		if err == nil {
			err = r.state.Apply(session.StateOp{Op: session.StateReplace, Key: key, Value: text})
		}
		if err != nil {
			return nil, fmt.Errorf("state %q of the call: %w", key, err)
		}
	}
	r.call = session.Call{ID: cmp.Or(c.ID, "c2-1"), Name: t.Name(), Arguments: raw}
	r.result.State, r.result.Once = r.state.Snapshot(), r.memo
	return r, nil
}

// encode makes a value JSON; a json.RawMessage is taken as it is, nil is nothing.
func encode(value any) (json.RawMessage, error) {
	if raw, ok := value.(json.RawMessage); ok || value == nil {
		return raw, nil
	}
	return json.Marshal(value)
}

// drive does what the engine plans until the call has a result or waits for what the
// test does not answer.
func (r *run) drive(ctx context.Context) {
	for waits := r.step(ctx); len(waits) > 0 && r.answer(waits); {
		waits = r.step(ctx)
	}
}

// step does what the call needs next and returns what it then waits for.
func (r *run) step(ctx context.Context) []session.Wait {
	p := r.plan()
	asksFirst := p.Do == engine.DoWait && p.Wait.Kind == session.WaitApproval
	switch {
	case !r.cutOff:
	case p.NeverRan, p.Refused, asksFirst && !repeats(p), p.Do == engine.DoRun:
		r.cutOff = false
		return r.recover(ctx, p)
	}
	switch p.Do {
	case engine.DoFail:
		r.result.Err = fmt.Errorf("the task fails: %s: %w", p.Failure.Message, tool.ErrExpired)
	case engine.DoResult:
		r.end(p.Result, r.why(p))
	case engine.DoWait:
		if !asksFirst {
			r.result.Err = ErrClient
			return nil
		}
		r.result.Err, r.result.Preview = ErrNotApproved, toolrun.Preview(r.t, p.Arguments)
		return []session.Wait{p.Wait}
	case engine.DoRun:
		return r.execute(ctx, p)
	}
	return nil
}

func (r *run) plan() engine.CallPlan {
	s := &session.Session{Calls: []session.Call{r.call}}
	return engine.Plan(s, "", func(_ session.Call, arguments json.RawMessage) engine.Traits {
		traits := toolrun.Traits(r.t, arguments)
		needed := traits.Approval
		traits.Approval = func() bool {
			r.result.NeedsApproval = needed()
			return r.result.NeedsApproval
		}
		return traits
	})[0]
}

// repeats reports whether the tool may be run again when the outcome of a run is not known.
func repeats(p engine.CallPlan) bool {
	return p.Traits.OnUnknown == session.UnknownProbe || p.Traits.OnUnknown == session.UnknownRetry
}

// recover does what follows a run of which the end is not known.
func (r *run) recover(ctx context.Context, p engine.CallPlan) []session.Wait {
	switch {
	case p.NeverRan: // given up by a decision, but it has run
		r.end(engine.Result(p.Call, llm.ResultUnknown, engine.TextUnknown), nil)
		return nil
	case p.Do != engine.DoRun || !repeats(p):
		result, wait := toolrun.Unknown(p)
		return r.unknown(result, wait, nil)
	case p.Traits.OnUnknown == session.UnknownProbe:
		if result := toolrun.Probe(ctx, r.t, r.newCall(p.Replies), p); result != nil {
			r.end(*result, nil)
			return nil
		}
	}
	return r.execute(ctx, p)
}

// unknown tells the model that the outcome is not known, or waits for a verdict.
func (r *run) unknown(result *llm.ToolResult, wait *session.Wait, cause error) []session.Wait {
	if wait == nil {
		r.end(*result, cause)
		return nil
	}
	r.result.Err = errors.Join(cause, fmt.Errorf("%s A person is asked: set Verdict: %w", wait.Text, tool.ErrWaiting))
	return []session.Wait{*wait}
}

// execute runs the tool's function, and again after a timeout where the tool allows it.
func (r *run) execute(ctx context.Context, p engine.CallPlan) []session.Wait {
	for try := 1; ; try++ {
		call := r.newCall(p.Replies)
		runCtx, cancel := context.WithTimeout(ctx, r.t.Timeout())
		output, err := r.t.Run(runCtx, call, p.Arguments)
		late := runCtx.Err() != nil
		cancel()
		r.result.Runs++
		taken := toolcall.Take[tool.Question](call)
		if r.result.Open = nil; len(taken.Questions) > 0 {
			return r.asked(p, taken.Questions, err)
		}
		sideEffect := p.Traits.Effect == session.SideEffect
		switch {
		case err == nil:
			r.succeed(p, output, taken)
		case late && sideEffect && ctx.Err() != nil && p.Traits.OnUnknown != session.UnknownTell:
			r.result.Err = err // what follows is for the next worker
		case late && sideEffect && !repeats(p):
			result, wait := toolrun.AfterTimeout(p, r.t.Timeout())
			return r.unknown(result, wait, err)
		case late && sideEffect:
			if p.Traits.OnUnknown == session.UnknownProbe {
				if result := toolrun.Probe(ctx, r.t, r.newCall(p.Replies), p); result != nil {
					r.end(*result, err)
					return nil
				}
			}
			if try < toolrun.MaxTimeouts {
				continue
			}
			r.end(toolrun.TimedOutAgain(p.Call, r.t.Timeout(), try), err)
		case ctx.Err() != nil:
			r.end(engine.Result(p.Call, llm.ResultCancelled, engine.TextCancelled), err)
		case late:
			r.end(toolrun.TimedOut(p.Call, r.t.Timeout()), err)
		default:
			r.end(engine.Result(p.Call, llm.ResultError, err.Error()), err)
		}
		return nil
	}
}

func (r *run) newCall(replies []session.Answer) *tool.Call {
	in := cmp.Or(r.c.Session, firstSession)
	cfg := toolcall.Config[tool.Files]{
		Session: session.Key{Tenant: session.DefaultTenant, ID: in}, Task: 1, ID: r.call.ID, Name: r.t.Name(),
		IdempotencyKey: cmp.Or(r.c.IdempotencyKey, session.DefaultTenant+"."+in+"."+r.call.ID),
		State:          r.state, Asked: r.call.Waits, Replies: replies, Who: r.t.Who(), Files: r.c.Files, Log: r.c.Log, Memo: r.memo,
	}
	if r.t.Effect() != tool.ReadOnly {
		cfg.Remember = func(_ context.Context, key string, value json.RawMessage) error {
			r.memo[key] = value
			return nil
		}
	}
	return toolcall.New[tool.Call](cfg)
}

func (r *run) succeed(p engine.CallPlan, output json.RawMessage, taken toolcall.Taken[tool.Question]) {
	after, err := r.state.With(taken.StateOps)
	if err != nil {
		r.result.Err = err
		return
	}
	r.result.State = after.Snapshot()
	for _, e := range taken.Events {
		r.result.Events = append(r.result.Events, Event{Name: e.Name, Data: e.Data})
	}
	r.end(toolrun.Success(p.Call, output), nil)
}

// end takes the result that the model is told; cause is its error, if there is another
// than its text.
func (r *run) end(told llm.ToolResult, cause error) {
	r.result.Status, r.result.Text, r.result.Err = told.Status, string(told.Output), nil
	if told.Status == llm.ResultSuccess {
		r.result.Output = told.Output
		return
	}
	var text string
	if err := json.Unmarshal(told.Output, &text); err == nil {
		r.result.Text = text
	}
	if r.result.Err = cause; cause == nil {
		r.result.Err = errors.New(r.result.Text)
	}
}

// why is the error of a result that was planned without a run of the tool.
func (r *run) why(p engine.CallPlan) error {
	if p.Refused {
		return r.t.Validate(p.Arguments)
	}
	if n := len(r.call.Answers); n > 0 && r.call.Answers[n-1].Kind == session.AnswerExpiry {
		return fmt.Errorf("nobody decided on the call: %w", tool.ErrExpired)
	}
	return nil
}

// asked takes the questions of a run, which suspend the call whatever the tool returned.
func (r *run) asked(p engine.CallPlan, questions []tool.Question, err error) []session.Wait {
	if r.result.Open = questions; err == nil || !errors.Is(err, tool.ErrWaiting) {
		err = errors.Join(tool.ErrWaiting, err)
	}
	r.result.Err = err
	waits := make([]session.Wait, 0, len(questions))
	for _, q := range questions {
		waits = append(waits, toolrun.QuestionWait(p, q))
		if !slices.ContainsFunc(r.result.Asked, func(k tool.Question) bool { return k.ID == q.ID && k.Text == q.Text }) {
			r.result.Asked = append(r.result.Asked, q)
		}
	}
	return waits
}

// refused reports whether the tool asked a question that is wrong in itself.
func (r *run) refused(id string) bool {
	return r.result.Err != nil && strings.Contains(r.result.Err.Error(), fmt.Sprintf("ask %q: ", id))
}

// unused names what the call holds and nothing asked for.
func (r *run) unused() error {
	var errs []error
	if r.result.Runs > 0 {
		var ids []string
		for _, id := range append(slices.Sorted(maps.Keys(r.c.Answers)), r.c.Expired...) {
			if !slices.ContainsFunc(r.result.Asked, func(q tool.Question) bool { return q.ID == id }) && !r.refused(id) {
				ids = append(ids, fmt.Sprintf("%q", id))
			}
		}
		if len(ids) > 0 {
			errs = append(errs, fmt.Errorf("the call has answers or deadlines for questions that the tool did not ask: %s", strings.Join(ids, ", ")))
		}
	}
	approval, verdict := r.decided[session.WaitApproval], r.decided[session.WaitUnknown]
	for _, field := range []struct {
		name        string
		given, used bool
	}{
		{"Approved", r.c.Approved, approval || r.result.NeedsApproval},
		{"Rejected", r.c.Rejected, approval},
		{"Edited", r.c.Edited != nil, approval},
		{"Verdict", r.c.Verdict != nil, verdict},
		{"DecisionExpired", r.c.DecisionExpired, approval || verdict},
	} {
		if invalid := (*tool.ArgumentError)(nil); field.given && !field.used && !errors.As(r.result.Err, &invalid) {
			errs = append(errs, fmt.Errorf("the call has %s, and nothing waited for it", field.name))
		}
	}
	return errors.Join(errs...)
}
