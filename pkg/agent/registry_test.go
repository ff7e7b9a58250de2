package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// fake is a model that says one thing and keeps what it was asked.
type fake struct {
	mu     sync.Mutex
	asked  []llm.Request
	events []llm.Event
	err    error
}

func (f *fake) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	f.mu.Lock()
	f.asked = append(f.asked, req)
	f.mu.Unlock()
	return func(yield func(llm.Event, error) bool) {
		for _, e := range f.events {
			if !yield(e, nil) {
				return
			}
		}
		if f.err != nil {
			yield(llm.Event{}, f.err)
		}
	}
}

func (f *fake) open(context.Context, string, func(string) string) (llm.Model, error) { return f, nil }

func env(pairs ...string) agent.Env {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func saying(text string) agent.Planner {
	return agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{Text: text}, nil })
}

func echo(name string) tool.Tool {
	return tool.Define(tool.Spec[struct{}]{Name: name, Description: name + "s."}, func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil })
}

type answer struct {
	City string `json:"city"`
}

func registry(t *testing.T, models agent.Models, agents ...agent.Agent) *agent.Registry {
	t.Helper()
	r, err := agent.NewRegistry(agent.Config{Models: models, Agents: agents})
	require.NoError(t, err)
	return r
}

func TestNewRegistry_tells_every_mistake(t *testing.T) {
	t.Parallel()
	hour := func(o session.DeadlineOutcome, v any) *tool.Expiry {
		return &tool.Expiry{After: time.Hour, Outcome: o, Value: v}
	}
	models := agent.Models{"fake": new(fake).open, "other": new(fake).open}
	one := func(change func(*agent.Agent)) agent.Config {
		a := agent.Agent{Name: "a", Model: "fake:m"}
		change(&a)
		return agent.Config{Models: models, Agents: []agent.Agent{a}}
	}
	for name, c := range map[string]struct {
		config agent.Config
		want   []string
	}{
		"no_agents":      {agent.Config{}, []string{"Agents: there are none"}},
		"prefix":         {agent.Config{Models: agent.Models{"": new(fake).open, "a:b": new(fake).open}, Agents: []agent.Agent{{Name: "a", Planner: saying("")}}}, []string{`"" is no prefix`, `"a:b" is no prefix`}},
		"prefix_no_open": {agent.Config{Models: agent.Models{"a": nil}, Agents: []agent.Agent{{Name: "a", Planner: saying("")}}}, []string{`the provider "a" has no Open`}},
		"no_name":        {one(func(a *agent.Agent) { a.Name = "" }), []string{`agent "#1": Name: "" is no name`}},
		"bad_name":       {one(func(a *agent.Agent) { a.Name = "a b" }), []string{`Name: "a b" is no name`}},
		"name_twice": {agent.Config{Models: models, Agents: []agent.Agent{{Name: "a", Model: "fake:m"}, {Name: "a", Model: "fake:m"}}}, []string{
			`agent "a": Name: another agent has it: rename one of them`,
		}},
		"nothing_plans": {one(func(a *agent.Agent) { a.Model = "" }), []string{"Model: the agent has nothing that plans: set Model (fake:<name>, other:<name>), Planner or Offline"}},
		"no_providers": {agent.Config{Agents: []agent.Agent{{Name: "a", Model: "fake:m"}}}, []string{
			`has no model providers: import github.com/adjourn/adjourn/pkg/llm/openai and set Models: agent.Models{"openai": openai.Open} in the Config`,
		}},
		"no_providers_for_an_adapter": {agent.Config{Agents: []agent.Agent{{Name: "a", Model: "anthropic:m"}}}, []string{
			`has no model providers: import github.com/adjourn/adjourn/pkg/llm/anthropic and set Models: agent.Models{"anthropic": anthropic.Open} in the Config`,
		}},
		"adapter_not_imported": {one(func(a *agent.Agent) { a.Model = "anthropic:m" }), []string{
			`has no provider "anthropic": import github.com/adjourn/adjourn/pkg/llm/anthropic and add "anthropic": anthropic.Open to the Models of its Config, or write fake:<name>, other:<name>`,
		}},
		"unknown_provider": {one(func(a *agent.Agent) { a.Model = "openia:gpt" }), []string{`Model: "openia:gpt": no provider "openia": write fake:<name>, other:<name>`}},
		"model_no_prefix":  {one(func(a *agent.Agent) { a.Model = "gpt" }), []string{"it names no provider"}},
		"model_no_name":    {one(func(a *agent.Agent) { a.Model = "fake:" }), []string{"it names no model of fake"}},
		"model_and_planner": {one(func(a *agent.Agent) { a.Planner = saying("") }), []string{
			"Model: no model is ever asked, for Planner plans always",
		}},
		"model_and_offline":   {one(func(a *agent.Agent) { a.Offline = saying("") }), []string{"Offline: it never plans, for Model names a model"}},
		"planner_and_offline": {one(func(a *agent.Agent) { a.Model, a.Planner, a.Offline = "", saying(""), saying("") }), []string{"Offline: it never plans, for Planner plans always"}},
		"max_output_tokens":   {one(func(a *agent.Agent) { a.MaxOutputTokens = -1 }), []string{"MaxOutputTokens: -1 is negative"}},
		"retention_negative":  {one(func(a *agent.Agent) { a.Retention = -time.Hour }), []string{"Retention: -1h0m0s is negative"}},
		"retry_negative":      {one(func(a *agent.Agent) { a.Retry.Attempts = -1 }), []string{"Retry: a field is negative"}},
		"retry_backwards":     {one(func(a *agent.Agent) { a.Retry.Max = time.Millisecond }), []string{"Retry: Base 1s is more than Max 1ms"}},
		"limits": {one(func(a *agent.Agent) {
			a.Limits = session.Limits{Steps: -2, Tokens: session.Unlimited, ActiveMillis: -3, CostMicros: -4, Depth: -5, Children: -6}
		}), []string{"Limits.Steps: -2", "Limits.ActiveMillis: -3", "Limits.CostMicros: -4", "Limits.Depth: -5", "Limits.Children: -6"}},
		"on_change":        {one(func(a *agent.Agent) { a.Policy.OnChange = "panic" }), []string{`Policy.OnChange: "panic" is no policy`}},
		"expiry_unsaid":    {one(func(a *agent.Agent) { a.InputExpiry = &tool.Expiry{} }), []string{"InputExpiry: expiry after 0s", `InputExpiry: expiry outcome ""`}},
		"expiry_no_value":  {one(func(a *agent.Agent) { a.InputExpiry = hour(session.ExpireDefault, nil) }), []string{"InputExpiry: expiry with outcome default needs a value: the text of a user message"}},
		"output_no_object": {one(func(a *agent.Agent) { a.Output = agent.OutputOf[[]string]() }), []string{"Output: the arguments of a tool are an object"}},
		"output_schema": {one(func(a *agent.Agent) {
			a.Output = agent.OutputSchema(json.RawMessage(`{"type":"object","properties":7}`))
		}), []string{"Output: "}},
		"output_nothing": {one(func(a *agent.Agent) { a.Output = agent.OutputSchema(nil) }), []string{"Output: "}},
		"output_zero":    {one(func(a *agent.Agent) { a.Output = new(agent.Output) }), []string{"Output: "}},
		"tool_twice":     {one(func(a *agent.Agent) { a.Tools = []tool.Tool{echo("x"), echo("y"), echo("x")} }), []string{`agent "a": tool "x": Name: another tool of the agent has it`}},
		"tool_reserved":  {one(func(a *agent.Agent) { a.Tools = []tool.Tool{echo(agent.FinishTool)} }), []string{`tool "__finish__": Name: it is reserved`}},
		"tool_zero":      {one(func(a *agent.Agent) { a.Tools = []tool.Tool{{}} }), []string{`agent "a": tool "#1": Tools: this is the zero Tool`}},
		"tool_mistakes": {one(func(a *agent.Agent) {
			a.Tools = []tool.Tool{tool.DefineClient(tool.Spec[string]{Name: "re fund", Effect: "x"})}
		}), []string{`tool "re fund": Name: "re fund"`, `tool "re fund": Effect: "x"`, `tool "re fund": In: the arguments of a tool are an object`}},
		"of_every_definition": {agent.Config{Agents: []agent.Agent{
			{Name: "a", Limits: session.Limits{Steps: -2}}, {Name: "b", Planner: saying(""), Tools: []tool.Tool{{}}}, {Name: "b", Offline: saying("")},
		}}, []string{`agent "a": Model:`, `agent "a": Limits.Steps`, `agent "b": tool "#1"`, `agent "b": Name: another agent has it`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := agent.NewRegistry(c.config)
			require.Nil(t, r)
			var mistake *agent.DefinitionError
			require.ErrorAs(t, err, &mistake)
			require.NotEmpty(t, mistake.Field)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.Len(t, strings.Split(err.Error(), "\n"), len(c.want), "%v", err)
		})
	}
}

func TestNewRegistry_keeps_the_tools_own_error(t *testing.T) {
	t.Parallel()
	_, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "a", Planner: saying(""), Tools: []tool.Tool{
		tool.DefineClient(tool.Spec[struct{}]{Name: "x", Effect: "y"}),
	}}}})
	var mistake *tool.SpecError
	require.ErrorAs(t, err, &mistake)
	require.Equal(t, "Effect", mistake.Field)
}

func TestRegistry_finds(t *testing.T) {
	t.Parallel()
	tools := []tool.Tool{echo("z"), echo("b")}
	r := registry(t, agent.Models{"fake": new(fake).open},
		agent.Agent{Name: "b", Model: "fake:m", Tools: tools, Output: agent.OutputOf[answer]()},
		agent.Agent{Name: "a", Offline: saying("hi")})
	tools[0] = echo("changed")
	require.Equal(t, []string{"a", "b"}, r.Names())

	b, ok := r.Agent("b")
	require.True(t, ok)
	var names []string
	for _, x := range b.Tools {
		names = append(names, x.Name())
	}
	require.Equal(t, []string{agent.FinishTool, "b", "z"}, names)
	b.Tools[0] = echo("changed")

	finish, ok := r.Tool("b", agent.FinishTool)
	require.True(t, ok)
	require.True(t, finish.Finish())
	require.Equal(t, session.ReadOnly, finish.Effect())
	require.JSONEq(t, string(b.Output.Schema()), string(finish.Schema()))

	_, ok = r.Tool("a", agent.FinishTool)
	require.False(t, ok)
	_, ok = r.Tool("nobody", "b")
	require.False(t, ok)
	_, ok = r.Agent("nobody")
	require.False(t, ok)
}

func TestFinishTool_hands_the_output_through(t *testing.T) {
	t.Parallel()
	r := registry(t, nil, agent.Agent{Name: "a", Planner: saying(""), Output: agent.OutputOf[answer]()})
	finish, ok := r.Tool("a", agent.FinishTool)
	require.True(t, ok)
	require.ErrorContains(t, finish.Validate(json.RawMessage(`{"town":"Bern"}`)), "/city: missing")
	args := json.RawMessage(`{"city":"Bern"}`)
	require.NoError(t, finish.Validate(args))
	out, err := finish.Run(t.Context(), toolcall.New[tool.Call](toolcall.Config[tool.Files]{}), args)
	require.NoError(t, err)
	require.JSONEq(t, string(args), string(out))

	byHand := agent.OutputSchema(json.RawMessage(`{"type":"object","required":["n"]}`))
	require.JSONEq(t, `{"type":"object","required":["n"]}`, string(byHand.Schema()))
	registry(t, nil, agent.Agent{Name: "a", Planner: saying(""), Output: byHand})
	require.Nil(t, (*agent.Output)(nil).Schema())
}

func TestRegistry_Rules(t *testing.T) {
	t.Parallel()
	models := agent.Models{"fake": new(fake).open}
	policy := session.Policy{TextNeedsInput: true, OnChange: session.ChangeFail}
	r := registry(t, models,
		agent.Agent{Name: "model", Model: "fake:m", Tools: []tool.Tool{echo("z"), echo("b")}, Policy: policy, Limits: session.Limits{Steps: 7, Tokens: session.Unlimited}, Output: agent.OutputOf[answer]()},
		agent.Agent{Name: "offline", Offline: saying("hi")},
		agent.Agent{Name: "planner", Planner: saying("hi")})

	got, err := r.Rules("model", nil)
	require.NoError(t, err)
	want := session.DefaultLimits()
	want.Steps, want.Tokens = 7, session.Unlimited
	require.NotEmpty(t, got.Digest)
	got.Digest = ""
	require.Equal(t, session.Rules{Agent: "model", Model: "fake:m", Limits: want, Policy: policy, Tools: []string{agent.FinishTool, "b", "z"}}, got)

	for name, models := range map[string][2]string{"model": {"fake:m", "fake:x"}, "offline": {"", "fake:x"}, "planner": {"", ""}} {
		for i, e := range []agent.Env{env(), env(agent.ModelVariable, "fake:x")} {
			got, err := r.Rules(name, e)
			require.NoError(t, err)
			require.Equal(t, models[i], got.Model, name)
		}
	}

	_, err = r.Rules("nobody", nil)
	require.ErrorIs(t, err, agent.ErrUnknownAgent)
	var unknown *agent.UnknownAgentError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, []string{"model", "offline", "planner"}, unknown.Known)
	require.EqualError(t, err, `unknown agent "nobody": there are model, offline, planner`)

	_, err = r.Rules("model", env(agent.ModelVariable, "gpt-5"))
	var model *agent.ModelError
	require.ErrorAs(t, err, &model)
	require.ErrorContains(t, err, "it names no provider: write fake:<name>; it is named by ADJOURN_MODEL")
	_, err = r.Rules("planner", env(agent.ModelVariable, "gpt-5"))
	require.NoError(t, err, "who asks no model does not care")
}

func TestRegistry_Rules_digest_changes_iff_what_matters_does(t *testing.T) {
	t.Parallel()
	digest := func(t *testing.T, e agent.Env, change func(*agent.Agent)) string {
		t.Helper()
		a := agent.Agent{Name: "a", Model: "fake:m", System: "Be kind.", Tools: []tool.Tool{echo("x"), echo("y")}}
		change(&a)
		r := registry(t, agent.Models{"fake": new(fake).open}, a)
		rules, err := r.Rules(a.Name, e)
		require.NoError(t, err)
		return rules.Digest
	}
	nothing := func(*agent.Agent) {}
	base := digest(t, nil, nothing)
	for name, c := range map[string]struct {
		change func(*agent.Agent)
		env    agent.Env
		same   bool
	}{
		"nothing":           {change: nothing, same: true},
		"order_of_tools":    {change: func(a *agent.Agent) { a.Tools = []tool.Tool{echo("y"), echo("x")} }, same: true},
		"description":       {change: func(a *agent.Agent) { a.Description = "x" }, same: true},
		"retry":             {change: func(a *agent.Agent) { a.Retry.Attempts = 2 }, same: true},
		"default_limits":    {change: func(a *agent.Agent) { a.Limits = session.DefaultLimits() }, same: true},
		"same_model_by_env": {change: nothing, env: env(agent.ModelVariable, "fake:m"), same: true},

		"name":      {change: func(a *agent.Agent) { a.Name = "b" }},
		"system":    {change: func(a *agent.Agent) { a.System = "Be brief." }},
		"model":     {change: func(a *agent.Agent) { a.Model = "fake:n" }},
		"model_env": {change: nothing, env: env(agent.ModelVariable, "fake:n")},
		"tool_gone": {change: func(a *agent.Agent) { a.Tools = a.Tools[:1] }},
		"tool_change": {change: func(a *agent.Agent) {
			a.Tools[0] = tool.DefineClient(tool.Spec[struct{}]{Name: "x", Description: "xs."})
		}},
		"output":  {change: func(a *agent.Agent) { a.Output = agent.OutputOf[answer]() }},
		"policy":  {change: func(a *agent.Agent) { a.Policy.HoldBatch = true }},
		"limits":  {change: func(a *agent.Agent) { a.Limits.Steps = 7 }},
		"offline": {change: func(a *agent.Agent) { a.Model, a.Offline = "", saying("") }},
		"planner": {change: func(a *agent.Agent) { a.Model, a.Planner = "", saying("") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.same, digest(t, c.env, c.change) == base)
		})
	}
}

func TestRegistry_Planner_chooses(t *testing.T) {
	t.Parallel()
	model := &fake{events: []llm.Event{{Kind: llm.EventTextDelta, Text: "model"}, {Kind: llm.EventStop, Stop: llm.StopEnd}}}
	r := registry(t, agent.Models{"fake": model.open},
		agent.Agent{Name: "model", Model: "fake:m"},
		agent.Agent{Name: "offline", Offline: saying("offline")},
		agent.Agent{Name: "planner", Planner: saying("planner")})
	for name, c := range map[string]struct {
		rules session.Rules
		env   agent.Env
		want  string
	}{
		"model":                        {rules: session.Rules{Agent: "model", Model: "fake:m"}, want: "model"},
		"offline":                      {rules: session.Rules{Agent: "offline"}, want: "offline"},
		"offline_with_a_model_named":   {rules: session.Rules{Agent: "offline", Model: "fake:x"}, want: "model"},
		"offline_is_held_to_its_rules": {rules: session.Rules{Agent: "offline"}, env: env(agent.ModelVariable, "fake:x"), want: "offline"},
		"planner":                      {rules: session.Rules{Agent: "planner"}, env: env(agent.ModelVariable, "fake:x"), want: "planner"},
		"planner_is_newer_than_rules":  {rules: session.Rules{Agent: "planner", Model: "fake:x"}, want: "planner"},
		"model_is_newer_than_rules":    {rules: session.Rules{Agent: "model"}, want: "model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := r.Planner(t.Context(), c.rules, c.env)
			require.NoError(t, err)
			reply, err := p.Plan(t.Context(), agent.View{})
			require.NoError(t, err)
			message, err := reply.Message()
			require.NoError(t, err)
			require.Equal(t, c.want, message.Text())
		})
	}
}

func TestRegistry_Planner_opens_a_model_once(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	fails := errors.New("OPENAI_API_KEY is not set")
	failing := atomic.Bool{}
	failing.Store(true)
	open := func(_ context.Context, name string, env func(string) string) (llm.Model, error) {
		opened.Add(1)
		if failing.Load() {
			return nil, fails
		}
		if name == "none" {
			return nil, nil //nolint:nilnil // a provider that misbehaves is the case
		}
		if env("KEY") != "secret" || name != "m:8b" {
			return nil, errors.New("unexpected arguments")
		}
		return new(fake), nil
	}
	r := registry(t, agent.Models{"fake": open}, agent.Agent{Name: "a", Model: "fake:m:8b"})
	rules := session.Rules{Agent: "a", Model: "fake:m:8b"}
	require.Zero(t, opened.Load(), "nothing is opened before the first call")

	_, err := r.Planner(t.Context(), rules, env("KEY", "secret"))
	require.ErrorIs(t, err, fails)
	require.EqualError(t, err, `agent a: model "fake:m:8b": it does not open: OPENAI_API_KEY is not set`)
	failing.Store(false)

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := r.Planner(t.Context(), rules, env("KEY", "secret")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(2), opened.Load(), "once failed, once opened")

	_, err = r.Planner(t.Context(), session.Rules{Agent: "a", Model: "fake:none"}, nil)
	require.ErrorContains(t, err, "the provider returned no model")
}

func TestRegistry_Planner_waits_for_the_one_who_opens(t *testing.T) {
	t.Parallel()
	opening, release := make(chan struct{}), make(chan struct{})
	r := registry(t, agent.Models{"fake": func(context.Context, string, func(string) string) (llm.Model, error) {
		close(opening)
		<-release
		return new(fake), nil
	}}, agent.Agent{Name: "a", Model: "fake:m"})
	rules := session.Rules{Agent: "a", Model: "fake:m"}
	done := make(chan error, 1)
	go func() {
		_, err := r.Planner(t.Context(), rules, nil)
		done <- err
	}()
	<-opening
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Planner(ctx, rules, nil)
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	require.NoError(t, <-done)
}

func TestRegistry_Planner_errors(t *testing.T) {
	t.Parallel()
	r := registry(t, agent.Models{"fake": new(fake).open}, agent.Agent{Name: "a", Model: "fake:m"}, agent.Agent{Name: "o", Offline: saying("")})
	_, err := r.Planner(t.Context(), session.Rules{Agent: "nobody"}, nil)
	require.ErrorIs(t, err, agent.ErrUnknownAgent)
	_, err = r.Planner(t.Context(), session.Rules{Agent: "a", Model: "gone:m"}, nil)
	require.EqualError(t, err, `agent a: model "gone:m": no provider "gone": write fake:<name>`)
}

// A task that began under rules goes on under them, whatever the program says by
// then: a tool that was taken from the rules is not offered, one that came later
// neither.
func TestRegistry_Planner_holds_a_task_to_its_rules(t *testing.T) {
	t.Parallel()
	f := &fake{events: []llm.Event{text("hi"), stop(llm.StopEnd)}}
	before := registry(t, agent.Models{"fake": f.open}, agent.Agent{Name: "a", Model: "fake:m", Tools: []tool.Tool{echo("x"), echo("y")}})
	rules, err := before.Rules("a", nil)
	require.NoError(t, err)

	after := registry(t, agent.Models{"fake": f.open}, agent.Agent{Name: "a", Model: "fake:other", Tools: []tool.Tool{echo("y"), echo("z")}})
	p, err := after.Planner(t.Context(), rules, nil)
	require.NoError(t, err)
	_, err = p.Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("go")}})
	require.NoError(t, err)
	require.Len(t, f.asked[0].Tools, 1)
	require.Equal(t, "y", f.asked[0].Tools[0].Name)

	now, err := after.Rules("a", nil)
	require.NoError(t, err)
	require.NotEqual(t, rules.Digest, now.Digest, "who goes on with it can see that the agent changed")
}
