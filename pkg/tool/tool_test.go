package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

type refundIn struct {
	Order  string `json:"order" jsonschema:"the order's number"`
	Amount int    `json:"amount"`
	Note   string `json:"note,omitempty"`
}

type receipt struct {
	ID string `json:"id"`
}

func refundSpec() tool.Spec[refundIn] {
	return tool.Spec[refundIn]{Name: "refund", Description: "Refund an order."}
}

func refund(_ context.Context, c *tool.Call, in refundIn) (receipt, error) {
	return receipt{ID: in.Order + "/" + c.IdempotencyKey()}, nil
}

func TestDefine_fills_in_what_is_not_said(t *testing.T) {
	t.Parallel()
	got := tool.Define(refundSpec(), refund)
	require.NoError(t, got.Err())
	require.Equal(t, "refund", got.Name())
	require.Equal(t, "Refund an order.", got.Description())
	require.Equal(t, session.SideEffect, got.Effect())
	require.Equal(t, session.UnknownTell, got.OnUnknown())
	require.Equal(t, tool.DefaultTimeout, got.Timeout())
	require.False(t, got.Client())
	require.False(t, got.Finish())
	require.False(t, got.HasApproval())
	require.Nil(t, got.Expiry())
	require.Empty(t, got.Who())
	require.Equal(t, got.Name(), got.Spec().Name)
	require.Equal(t, got.Description(), got.Spec().Description)
	require.Equal(t, got.Schema(), got.Spec().Schema)
}

func TestDefine_keeps_what_is_said(t *testing.T) {
	t.Parallel()
	who := []string{"ops"}
	expiry := &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny}
	spec := refundSpec()
	spec.Effect, spec.Finish, spec.Timeout = session.SideEffect, true, time.Second
	spec.OnUnknown, spec.Approve = session.UnknownRetry, tool.Always[refundIn]
	spec.Expiry, spec.Who = expiry, who
	got := tool.Define(spec, refund)
	who[0], expiry.After = "changed", 0 // the tool has its own copies
	require.NoError(t, got.Err())
	require.True(t, got.Finish())
	require.True(t, got.HasApproval())
	require.Equal(t, time.Second, got.Timeout())
	require.Equal(t, session.UnknownRetry, got.OnUnknown())
	require.Equal(t, time.Hour, got.Expiry().After)
	require.Equal(t, []string{"ops"}, got.Who())
}

func TestDefineClient(t *testing.T) {
	t.Parallel()
	got := tool.DefineClient(tool.Spec[struct{}]{
		Name: "locate", Expiry: &tool.Expiry{After: time.Minute, Outcome: session.ExpireDefault, Value: json.RawMessage(`null`)},
	})
	require.NoError(t, got.Err())
	require.True(t, got.Client())
	require.NoError(t, got.Validate(nil))
	_, err := got.Run(t.Context(), tool.NewCall(tool.CallConfig{}), nil)
	require.ErrorContains(t, err, "runs in the client")
}

func TestDefine_tells_every_mistake(t *testing.T) {
	t.Parallel()
	probe := func(context.Context, *tool.Call, refundIn) (any, bool, error) { return nil, false, nil }
	hour := func(o session.DeadlineOutcome, v any) *tool.Expiry {
		return &tool.Expiry{After: time.Hour, Outcome: o, Value: v}
	}
	for name, c := range map[string]struct {
		change func(*tool.Spec[refundIn])
		client bool
		want   []string
	}{
		"no_name":         {change: func(s *tool.Spec[refundIn]) { s.Name = "" }, want: []string{`Name: ""`}},
		"name_with_space": {change: func(s *tool.Spec[refundIn]) { s.Name = "re fund" }, want: []string{`"re fund"`}},
		"name_too_long":   {change: func(s *tool.Spec[refundIn]) { s.Name = strings.Repeat("x", 65) }, want: []string{"1 to 64"}},
		"effect":          {change: func(s *tool.Spec[refundIn]) { s.Effect = "none" }, want: []string{`Effect: "none"`}},
		"policy":          {change: func(s *tool.Spec[refundIn]) { s.OnUnknown = "guess" }, want: []string{`OnUnknown: "guess"`}},
		"probe_missing":   {change: func(s *tool.Spec[refundIn]) { s.OnUnknown = session.UnknownProbe }, want: []string{"Probe: tool.UnknownProbe needs"}},
		"probe_unasked":   {change: func(s *tool.Spec[refundIn]) { s.Probe = probe }, want: []string{"Probe: it is never asked"}},
		"policy_of_read_only": {change: func(s *tool.Spec[refundIn]) {
			s.Effect, s.OnUnknown = session.ReadOnly, session.UnknownRetry
		}, want: []string{"OnUnknown: a tool that is read_only is simply run again"}},
		"timeout_without_unit": {change: func(s *tool.Spec[refundIn]) { s.Timeout = 5 }, want: []string{"Timeout: 5ns is too short for any tool: a number without a unit is nanoseconds"}},
		"client_read_only_policy": {client: true, change: func(s *tool.Spec[refundIn]) {
			s.Effect, s.OnUnknown = session.ReadOnly, session.UnknownAsk
		}, want: []string{"OnUnknown: it is for tools that run here"}},
		"properties_of_no_use": {change: func(s *tool.Spec[refundIn]) {
			s.Properties = map[string]json.RawMessage{
				"amount": json.RawMessage(`{"minimun": 1, "minLength": 2, "x-mine": 1}`), "order": json.RawMessage(`{"minimum": "1"}`), "note": json.RawMessage(`{"zzz": 1}`),
			}
		}, want: []string{
			`property "amount": "minLength" is for type string, and its type is integer`, `"minimun" is no keyword of JSON Schema: did you mean "minimum"?`,
			`property "note": "zzz" is no keyword of JSON Schema`, `property "order": "minimum" must be a number, not a string`,
		}},
		"properties_of_another_type": {change: func(s *tool.Spec[refundIn]) {
			s.Properties = map[string]json.RawMessage{"amount": json.RawMessage(`{"type": "string"}`), "order": json.RawMessage(`{"type": ["string", "null"]}`)}
		}, want: []string{`property "amount": its type is integer in Go, and "string" cannot be read into that`, `property "order": its type is string in Go, and "null"`}},
		"schema_of_another_type": {change: func(s *tool.Spec[refundIn]) {
			s.Schema = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"string"},"order":{"type":["string","null"]},"more":{"type":"string"}}}`)
		}, want: []string{`Schema: property "amount" has the type string, and In has integer there`}},
		"timeout":        {change: func(s *tool.Spec[refundIn]) { s.Timeout = -1 }, want: []string{"Timeout: -1ns is negative"}},
		"client_timeout": {client: true, change: func(s *tool.Spec[refundIn]) { s.Timeout = 1 }, want: []string{"Timeout: it is for tools that run here"}},
		"client_policy":  {client: true, change: func(s *tool.Spec[refundIn]) { s.OnUnknown = session.UnknownTell }, want: []string{"OnUnknown: it is for tools that run here"}},
		"who":            {change: func(s *tool.Spec[refundIn]) { s.Who = []string{""} }, want: []string{"Who: it holds an empty name"}},
		"roles":          {change: func(s *tool.Spec[refundIn]) { s.Roles = []string{"finance", ""} }, want: []string{"Roles: it holds an empty role"}},
		"negative":       {change: func(s *tool.Spec[refundIn]) { s.Approve, s.Need, s.Noes = tool.Always[refundIn], -1, -2 }, want: []string{"Need: -1 is negative", "Noes: -2 is negative"}},
		"too_many":       {change: func(s *tool.Spec[refundIn]) { s.Approve, s.Need = tool.Always[refundIn], 11 }, want: []string{"Need: 11 people are more than 10"}},
		"more_than_named": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Need, s.Noes, s.Who = tool.Always[refundIn], 3, 3, []string{"ann", "bob", "ann"}
		}, want: []string{"Need: 3 people are needed, and Who names 2", "Noes: 3 people are needed, and Who names 2"}},
		"votes_on_no_approval": {change: func(s *tool.Spec[refundIn]) { s.Need = 2 }, want: []string{"Need: it counts votes on an approval, and the tool asks for none"}},
		"votes_for_a_client":   {client: true, change: func(s *tool.Spec[refundIn]) { s.Noes = 2 }, want: []string{"Noes: it counts votes on an approval"}},
		"assurance":            {change: func(s *tool.Spec[refundIn]) { s.Assurance = "sure" }, want: []string{`Assurance: "sure" is no assurance`}},
		"silence_is_not_two": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Need, s.Expiry = tool.Always[refundIn], 2, hour(session.ExpireDefault, true)
		}, want: []string{"Expiry: a default of true would approve without the people"}},
		"silence_is_nobody": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.NotRequester, s.Expiry = tool.Always[refundIn], true, hour(session.ExpireDefault, true)
		}, want: []string{"Expiry: a default of true would approve without the people"}},
		"silence_is_not_two_noes": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Noes, s.Expiry = tool.Always[refundIn], 2, hour(session.ExpireDefault, true)
		}, want: []string{"Expiry: a default of true would approve without the people"}},
		"silence_has_not_signed_in": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Assurance, s.Expiry = tool.Always[refundIn], tool.AssuranceSignedIn, hour(session.ExpireDefault, json.RawMessage(` true`))
		}, want: []string{"Expiry: a default of true would approve without the people"}},
		"reminders": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Expiry = tool.Always[refundIn], &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: []time.Duration{1, 2, 3, 4, 5}}
		}, want: []string{"Expiry: expiry with 5 reminders: at most 4 are given"}},
		"reminder_before_asking": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Expiry = tool.Always[refundIn], &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: []time.Duration{time.Hour}}
		}, want: []string{"Expiry: a reminder 1h0m0s before a deadline after 1h0m0s"}},
		"reminder_after_the_deadline": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Expiry = tool.Always[refundIn], &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: []time.Duration{-time.Second}}
		}, want: []string{"Expiry: a reminder -1s before a deadline"}},
		"reminder_twice": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Expiry = tool.Always[refundIn], &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: []time.Duration{time.Minute, time.Minute}}
		}, want: []string{"Expiry: two reminders 1m0s before the deadline"}},
		"escalation_of_everyones": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Expiry = tool.Always[refundIn], &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Escalate: &tool.Escalation{Who: []string{"eve"}, After: 1}}
		}, want: []string{"Expiry: it escalates to others, and everyone who sees the session may answer already"}},
		"escalation_to_nobody": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Who, s.Expiry = tool.Always[refundIn], []string{"ann"}, &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Escalate: &tool.Escalation{After: 1}}
		}, want: []string{"Expiry: escalation to nobody"}},
		"escalation_to_no_name": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Who, s.Expiry = tool.Always[refundIn], []string{"ann"}, &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Escalate: &tool.Escalation{Roles: []string{""}, After: 1}}
		}, want: []string{"Expiry: escalation to nobody"}},
		"escalation_for_no_time": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Who, s.Expiry = tool.Always[refundIn], []string{"ann"}, &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Escalate: &tool.Escalation{Who: []string{"eve"}}}
		}, want: []string{"Expiry: escalation for 0s: the time to answer must be more than zero"}},
		"allowed_for_a_client": {client: true, change: func(s *tool.Spec[refundIn]) { s.Approve, s.PolicyMayAllow = tool.Always[refundIn], true }, want: []string{"PolicyMayAllow: it is for tools that run here"}},
		"allowed_without_rule": {change: func(s *tool.Spec[refundIn]) { s.PolicyMayAllow = true }, want: []string{"PolicyMayAllow: the tool asks for no approval"}},
		"allowed_instead_of_two": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.PolicyMayAllow, s.Need = tool.Always[refundIn], true, 2
		}, want: []string{"PolicyMayAllow: a policy would approve without the people"}},
		"allowed_beside_noes": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.PolicyMayAllow, s.Noes = tool.Always[refundIn], true, 2
		}, want: []string{"PolicyMayAllow: a policy would approve without the people"}},
		"allowed_by_who_asks": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.PolicyMayAllow, s.NotRequester = tool.Always[refundIn], true, true
		}, want: []string{"PolicyMayAllow: a policy would approve without the people"}},
		"allowed_unsigned": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.PolicyMayAllow, s.Assurance = tool.Always[refundIn], true, tool.AssuranceSignedIn
		}, want: []string{"PolicyMayAllow: a policy would approve without the people"}},
		"expiry_of_nothing": {
			change: func(s *tool.Spec[refundIn]) { s.Expiry = hour(session.ExpireDeny, nil) },
			want:   []string{"Expiry: the tool waits for nobody"},
		},
		"expiry_unsaid": {client: true, change: func(s *tool.Spec[refundIn]) { s.Expiry = &tool.Expiry{} }, want: []string{"more than zero", `outcome "": use tool.ExpireDeny, ExpireDefault, ExpireFail or ExpireReask`}},
		"expiry_without_value": {
			client: true, change: func(s *tool.Spec[refundIn]) { s.Expiry = hour(session.ExpireDefault, nil) },
			want: []string{"needs a value: the result"},
		},
		"expiry_with_useless_value": {
			client: true, change: func(s *tool.Spec[refundIn]) { s.Expiry = hour(session.ExpireFail, 1) },
			want: []string{"takes no value"},
		},
		"expiry_value_no_json": {
			client: true, change: func(s *tool.Spec[refundIn]) { s.Expiry = hour(session.ExpireDefault, func() {}) },
			want: []string{"cannot be made JSON"},
		},
		"approval_default_no_bool": {change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Expiry = tool.Always[refundIn], hour(session.ExpireDefault, "yes")
		}, want: []string{`true approves, false does not; it has "yes"`}},
		"approval_and_client_default": {client: true, change: func(s *tool.Spec[refundIn]) {
			s.Approve, s.Expiry = tool.Always[refundIn], hour(session.ExpireDefault, true)
		}, want: []string{"both the approval and the client's result"}},
		"unknown_default": {change: func(s *tool.Spec[refundIn]) {
			s.OnUnknown, s.Expiry = session.UnknownAsk, hour(session.ExpireDefault, true)
		}, want: []string{"has no default"}},
		"schema_no_json":   {change: func(s *tool.Spec[refundIn]) { s.Schema = json.RawMessage(`{`) }, want: []string{"Schema: it is not JSON"}},
		"schema_no_object": {change: func(s *tool.Spec[refundIn]) { s.Schema = json.RawMessage(`{"type":"array"}`) }, want: []string{"Schema: the arguments of a tool are an object"}},
		"schema_wrong":     {change: func(s *tool.Spec[refundIn]) { s.Schema = json.RawMessage(`{"type":"object","required":7}`) }, want: []string{"Schema: it does not compile"}},
		"schema_remote": {change: func(s *tool.Spec[refundIn]) {
			s.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`)
		}, want: []string{"nothing is fetched"}},
		"schema_file": {change: func(s *tool.Spec[refundIn]) {
			s.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`)
		}, want: []string{"nothing is fetched"}},
		"properties_and_schema": {change: func(s *tool.Spec[refundIn]) {
			s.Schema = json.RawMessage(`{"type":"object"}`)
			s.Properties = map[string]json.RawMessage{"amount": json.RawMessage(`{}`)}
		}, want: []string{"Properties: Schema is set"}},
		"properties_unknown": {change: func(s *tool.Spec[refundIn]) {
			s.Properties = map[string]json.RawMessage{"sum": json.RawMessage(`{}`), "amount": json.RawMessage(`7`)}
		}, want: []string{`no property "sum": use one of [amount note order]`, `property "amount": its keywords`}},
		"many_at_once": {change: func(s *tool.Spec[refundIn]) {
			s.Name, s.Effect, s.Timeout, s.Schema = "", "x", -1, json.RawMessage(`7`)
		}, want: []string{"Name:", "Effect:", "Timeout:", "Schema:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := refundSpec()
			c.change(&spec)
			got := tool.Define(spec, refund)
			if c.client {
				got = tool.DefineClient(spec)
			}
			var mistake *tool.SpecError
			require.ErrorAs(t, got.Err(), &mistake)
			require.Equal(t, spec.Name, mistake.Tool)
			for _, want := range c.want {
				require.ErrorContains(t, got.Err(), want)
			}
			require.Len(t, strings.Split(got.Err().Error(), "\n"), len(c.want), "%v", got.Err())
			_ = got.Digest() // nothing of a mistaken tool panics
			_ = got.Validate(json.RawMessage(`{"order":"1","amount":2}`))
			require.True(t, json.Valid(got.Schema()))
		})
	}
}

func TestDefine_without_function(t *testing.T) {
	t.Parallel()
	got := tool.Define[refundIn, receipt](refundSpec(), nil)
	require.ErrorContains(t, got.Err(), "fn: the function is nil")
	_, err := got.Run(t.Context(), nil, json.RawMessage(`{}`))
	var panicked *tool.PanicError
	require.ErrorAs(t, err, &panicked)
}

func TestTool_zero_value_says_so(t *testing.T) {
	t.Parallel()
	var none tool.Tool
	require.ErrorContains(t, none.Err(), "tool.Define")
	require.Equal(t, session.SideEffect, none.Effect())
	require.True(t, json.Valid(none.Schema()))
	require.NotEmpty(t, none.Digest())
	require.Error(t, none.Validate(nil))
	require.False(t, none.NeedsApproval(nil))
	_, err := none.Run(t.Context(), nil, nil)
	require.ErrorContains(t, err, "tool.Define")
	_, _, err = none.Probe(t.Context(), nil, nil)
	require.Error(t, err)
}

func TestTool_Run(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	run := func(t *testing.T, fn func(context.Context, *tool.Call, refundIn) (any, error), args string) (json.RawMessage, error) {
		t.Helper()
		got := tool.Define(refundSpec(), fn)
		require.NoError(t, got.Err())
		return got.Run(t.Context(), tool.NewCall(tool.CallConfig{IdempotencyKey: "k"}), json.RawMessage(args))
	}
	returns := func(v any, err error) func(context.Context, *tool.Call, refundIn) (any, error) {
		return func(context.Context, *tool.Call, refundIn) (any, error) { return v, err }
	}

	t.Run("decodes_and_marshals", func(t *testing.T) {
		t.Parallel()
		got := tool.Define(refundSpec(), refund)
		out, err := got.Run(t.Context(), tool.NewCall(tool.CallConfig{IdempotencyKey: "k"}), json.RawMessage(`{"order":"A1","amount":3}`))
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"A1/k"}`, string(out))
	})
	t.Run("nothing_is_JSON_too", func(t *testing.T) {
		t.Parallel()
		for want, v := range map[string]any{"null": nil, "{}": struct{}{}, `""`: "", "0": 0, "[]": []int{}} {
			out, err := run(t, returns(v, nil), ``)
			require.NoError(t, err)
			require.Equal(t, want, string(out))
		}
	})
	t.Run("error_comes_back_as_it_is", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, returns("ignored", boom), `{}`)
		require.Equal(t, boom, err)
	})
	t.Run("panic_is_an_error", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, func(context.Context, *tool.Call, refundIn) (any, error) { panic(boom) }, `{}`)
		var panicked *tool.PanicError
		require.ErrorAs(t, err, &panicked)
		require.ErrorIs(t, err, boom)
		require.Equal(t, "tool refund panicked: boom", err.Error())
		require.Contains(t, string(panicked.Stack), "tool_test.go")
	})
	t.Run("panic_message_is_safe", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, func(context.Context, *tool.Call, refundIn) (any, error) { panic("\xff" + strings.Repeat("x", 10_000)) }, `{}`)
		require.Less(t, len(err.Error()), 600)
		require.Contains(t, err.Error(), "\uFFFDxxx")
	})
	t.Run("result_that_is_no_JSON", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, returns(func() {}, nil), `{}`)
		require.ErrorContains(t, err, "its result is not JSON")
	})
	t.Run("result_that_panics", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, returns(evil{}, nil), `{}`)
		require.Error(t, err)
	})
	t.Run("result_too_large", func(t *testing.T) {
		t.Parallel()
		_, err := run(t, returns(strings.Repeat("x", tool.MaxResultBytes), nil), `{}`)
		require.ErrorContains(t, err, "refund ran, but its result has")
	})
	t.Run("arguments_that_do_not_decode", func(t *testing.T) {
		t.Parallel()
		for _, args := range []string{`{"amount":"x"}`, `{`, `{} {}`, `[]`} {
			_, err := run(t, returns(nil, nil), args)
			require.ErrorContains(t, err, "decode arguments", args)
		}
	})
}

// evil panics in both directions.
type evil struct{}

func (evil) MarshalJSON() ([]byte, error)  { panic("no") }
func (*evil) UnmarshalJSON(_ []byte) error { panic("no") }

func TestTool_NeedsApproval(t *testing.T) {
	t.Parallel()
	with := func(rule func(refundIn) bool) tool.Tool {
		spec := refundSpec()
		spec.Approve = rule
		return tool.Define(spec, refund)
	}
	over100 := with(func(in refundIn) bool { return in.Amount > 100 })
	for name, c := range map[string]struct {
		tool tool.Tool
		args string
		want bool
	}{
		"no_rule":             {with(nil), `{"amount":1000}`, false},
		"always":              {with(tool.Always[refundIn]), `{}`, true},
		"rule_says_no":        {over100, `{"amount":100}`, false},
		"rule_says_yes":       {over100, `{"amount":101}`, true},
		"rule_panics":         {with(func(refundIn) bool { panic("no") }), `{}`, true},
		"cannot_be_decoded":   {over100, `{"amount":"1"}`, true},
		"no_JSON":             {over100, `{`, true},
		"no_rule_and_no_JSON": {with(nil), `{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.tool.NeedsApproval(json.RawMessage(c.args)))
		})
	}
}

// TestTool_ProbeChangesNothing: what a probe sets would be dropped, so it is told; the
// call itself goes on being able to.
func TestTool_ProbeChangesNothing(t *testing.T) {
	t.Parallel()
	var errs []error
	probed := tool.Define(tool.Spec[refundIn]{Name: "x", OnUnknown: session.UnknownProbe, Probe: func(_ context.Context, c *tool.Call, _ refundIn) (any, bool, error) {
		errs = []error{c.Append("a", 1), c.Replace("b", 2), c.Emit("e", 3)}
		return "found", true, nil
	}}, func(context.Context, *tool.Call, refundIn) (string, error) { return "", nil })
	call := tool.NewCall(tool.CallConfig{})
	_, happened, err := probed.Probe(t.Context(), call, json.RawMessage(`{"order":"A1","amount":3}`))
	require.NoError(t, err)
	require.True(t, happened)
	for _, err := range errs {
		require.ErrorContains(t, err, "a Probe cannot change state or send events")
	}
	require.NoError(t, call.Append("a", 1))
	require.Len(t, call.Taken().StateOps, 1)
}

func TestTool_Probe(t *testing.T) {
	t.Parallel()
	with := func(probe func(context.Context, *tool.Call, refundIn) (any, bool, error)) tool.Tool {
		spec := refundSpec()
		spec.OnUnknown, spec.Probe = session.UnknownProbe, probe
		got := tool.Define(spec, refund)
		require.NoError(t, got.Err())
		return got
	}
	args := json.RawMessage(`{"order":"A1","amount":3}`)
	call := tool.NewCall(tool.CallConfig{})
	result, happened, err := with(func(_ context.Context, _ *tool.Call, in refundIn) (any, bool, error) {
		return receipt{ID: in.Order}, true, nil
	}).Probe(t.Context(), call, args)
	require.NoError(t, err)
	require.True(t, happened)
	require.JSONEq(t, `{"id":"A1"}`, string(result))

	result, happened, err = with(func(context.Context, *tool.Call, refundIn) (any, bool, error) {
		return "ignored", false, nil
	}).Probe(t.Context(), call, args)
	require.NoError(t, err)
	require.False(t, happened)
	require.Nil(t, result)

	_, happened, err = with(func(context.Context, *tool.Call, refundIn) (any, bool, error) { panic("no") }).Probe(t.Context(), call, args)
	require.ErrorContains(t, err, "the probe of tool refund panicked: no")
	var panicked *tool.PanicError
	require.ErrorAs(t, err, &panicked)
	require.False(t, happened)

	_, happened, err = with(func(context.Context, *tool.Call, refundIn) (any, bool, error) { return func() {}, true, nil }).Probe(t.Context(), call, args)
	require.Error(t, err)
	require.False(t, happened)

	_, _, err = with(func(context.Context, *tool.Call, refundIn) (any, bool, error) { return nil, true, nil }).Probe(t.Context(), call, json.RawMessage(`7`))
	require.ErrorContains(t, err, "decode arguments")
}

func TestTool_Digest(t *testing.T) {
	t.Parallel()
	base := tool.Define(refundSpec(), refund).Digest()
	probe := func(context.Context, *tool.Call, refundIn) (any, bool, error) { return nil, false, nil }
	for name, c := range map[string]struct {
		change func(*tool.Spec[refundIn])
		same   bool
	}{
		"nothing": {func(*tool.Spec[refundIn]) {}, true},
		"defaults": {func(s *tool.Spec[refundIn]) {
			s.Effect, s.Timeout, s.OnUnknown = session.SideEffect, tool.DefaultTimeout, session.UnknownTell
		}, true},
		"who": {func(s *tool.Spec[refundIn]) { s.Who = []string{"ops"} }, false},
		"rule of none": {func(s *tool.Spec[refundIn]) {
			s.Need, s.Noes, s.Assurance, s.Roles = 1, 1, tool.AssuranceLink, []string{}
		}, true},
		"roles":       {func(s *tool.Spec[refundIn]) { s.Roles = []string{"ops"} }, false},
		"requester":   {func(s *tool.Spec[refundIn]) { s.NotRequester = true }, false},
		"assurance":   {func(s *tool.Spec[refundIn]) { s.Assurance = tool.AssuranceSignedIn }, false},
		"name":        {func(s *tool.Spec[refundIn]) { s.Name = "repay" }, false},
		"description": {func(s *tool.Spec[refundIn]) { s.Description = "Repay." }, false},
		"effect":      {func(s *tool.Spec[refundIn]) { s.Effect = session.Idempotent }, false},
		"approval":    {func(s *tool.Spec[refundIn]) { s.Approve = tool.Always[refundIn] }, false},
		"allowed": {func(s *tool.Spec[refundIn]) {
			s.Approve, s.PolicyMayAllow = tool.Always[refundIn], true
		}, false},
		"finish":       {func(s *tool.Spec[refundIn]) { s.Finish = true }, false},
		"timeout":      {func(s *tool.Spec[refundIn]) { s.Timeout = time.Second }, false},
		"policy":       {func(s *tool.Spec[refundIn]) { s.OnUnknown = session.UnknownAsk }, false},
		"policy_probe": {func(s *tool.Spec[refundIn]) { s.OnUnknown, s.Probe = session.UnknownProbe, probe }, false},
		"schema": {func(s *tool.Spec[refundIn]) {
			s.Properties = map[string]json.RawMessage{"amount": json.RawMessage(`{"minimum":1}`)}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := refundSpec()
			c.change(&spec)
			got := tool.Define(spec, refund)
			require.NoError(t, got.Err())
			require.Equal(t, c.same, got.Digest() == base)
		})
	}
	late := func(escalate *tool.Escalation, remind ...time.Duration) string {
		spec := refundSpec()
		spec.Approve, spec.Who, spec.Expiry = tool.Always[refundIn], []string{"ann"}, &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: remind, Escalate: escalate}
		return tool.Define(spec, refund).Digest()
	}
	require.NotEqual(t, late(nil), late(&tool.Escalation{Who: []string{"eve"}, After: 1}), "who may answer in the end")
	require.Equal(t, late(nil), late(nil, time.Minute), "a reminder promises nothing about what runs")
	two, three := refundSpec(), refundSpec()
	two.Approve, two.Need, two.Noes, three.Approve, three.Need, three.Noes = tool.Always[refundIn], 2, 3, tool.Always[refundIn], 3, 2
	require.NotEqual(t, tool.Define(two, refund).Digest(), tool.Define(three, refund).Digest(), "need and noes")
	require.NotEqual(t, base, tool.DefineClient(refundSpec()).Digest(), "client")
}

func TestExpiry_Validate_escalation(t *testing.T) {
	t.Parallel()
	x := &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Escalate: &tool.Escalation{Who: []string{"eve"}, After: time.Hour}}
	for _, kind := range session.WaitKinds() {
		if kind == session.WaitInput || kind == session.WaitChild {
			require.ErrorContains(t, x.Validate(kind), "has nobody to escalate to")
		} else {
			require.NoError(t, x.Validate(kind))
		}
	}
}

func TestExpiry_Validate_by_kind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  session.WaitKind
		value any
		ok    bool
	}{
		{session.WaitApproval, false, true},
		{session.WaitApproval, nil, false},
		{session.WaitQuestion, "", true},
		{session.WaitQuestion, []string{}, true},
		{session.WaitQuestion, 7, false},
		{session.WaitQuestion, nil, false},
		{session.WaitInput, "go on", true},
		{session.WaitInput, []string{"go on"}, false},
		{session.WaitClientTool, 0, true},
		{session.WaitClientTool, nil, false},
		{session.WaitChild, "x", false},
	} {
		err := (&tool.Expiry{After: 1, Outcome: session.ExpireDefault, Value: c.value}).Validate(c.kind)
		require.Equal(t, c.ok, err == nil, "%s %v: %v", c.kind, c.value, err)
	}
}
