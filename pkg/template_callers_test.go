package pkg_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

// callers is what a deployer says about who may call.
type callers struct{ issuer, audience, claim, fixed, iam, open string }

func (c callers) parameters() map[string]string {
	return map[string]string{
		"JwtIssuer": c.issuer, "JwtAudience": c.audience, "TenantClaim": c.claim, "FixedTenant": c.fixed, "IamTenant": c.iam, "AllowUnauthenticated": c.open,
	}
}

// routeOf is how the routes of an accepted deployment ask who calls, "" for what is refused.
func (c callers) routeOf() string {
	tokens := c.issuer != "" && c.audience != ""
	none := c.issuer == "" && c.audience == ""
	switch {
	case c.fixed != "" && c.claim != "tenant":
		return ""
	case c.open == "true" && none && c.iam == "" && c.fixed == "":
		return "NONE"
	case c.open == "false" && c.iam != "" && none && c.fixed == "":
		return "AWS_IAM"
	case c.open == "false" && c.iam == "" && tokens:
		return "JWT"
	}
	return ""
}

// TestTemplateCallers tries every combination of what can be said about callers:
// the template's rules refuse all that says nothing, or two things; of what they
// let through each route asks for what was said, and the functions' settings take
// what they are told.
func TestTemplateCallers(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	routes := b.ids(t, "AWS::ApiGatewayV2::Route")
	accepted := map[string]int{}
	for _, c := range combinations() {
		e := evaluation{t: t, bundle: b, parameters: c.parameters()}
		refusals := e.refusals()
		want := c.routeOf()
		require.Equal(t, want == "", len(refusals) > 0, "%+v: %v", c, refusals)
		for _, words := range refusals {
			require.Regexp(t, "JwtIssuer|JwtAudience|IamTenant|FixedTenant", words)
			require.Regexp(t, "name the|[Ll]eave", words, "it says what to do")
		}
		// The conditions hold also where nobody asked the rules: only the word opens.
		for _, id := range routes {
			p := b.properties(t, id, "AWS::ApiGatewayV2::Route")
			if slices.Contains(openRoutes, p["RouteKey"].(string)) {
				continue
			}
			got := e.value(p["AuthorizationType"])
			require.Equal(t, c.open == "true", got == "NONE", "%+v", c)
			require.Equal(t, got == "JWT", e.value(p["AuthorizerId"]) != nil, "%+v", c)
			require.Equal(t, got == "JWT", e.holds(b.resource(t, "Authorizer", "AWS::ApiGatewayV2::Authorizer")["Condition"].(string)), "%+v", c)
			if want != "" {
				require.Equal(t, want, got, "%+v", c)
			}
		}
		if want == "" {
			continue
		}
		accepted[want]++
		for _, id := range []string{"Start", "Resume", "Submit", "Query"} {
			env := asMap(t, asMap(t, b.properties(t, id, functionType)["Environment"])["Variables"])
			settings, err := serverless.ReadSettings(func(name string) string {
				if slices.Contains([]string{"ADJOURN_TABLE", "ADJOURN_BUCKET"}, name) {
					return "x"
				}
				if name == "ADJOURN_QUEUE_URL" {
					return "https://sqs/1/steps"
				}
				text, _ := e.value(env[name]).(string)
				return text
			})
			require.NoError(t, err, "%s: %+v", id, c)
			require.Equal(t, c.fixed, settings.FixedTenant)
			require.Equal(t, c.iam, settings.IAMTenant)
			require.Equal(t, want == "NONE", settings.AllowUnauthenticated)
			require.Equal(t, c.claim, settings.TenantClaim)
		}
	}
	require.Equal(t, map[string]int{"NONE": 2, "AWS_IAM": 2, "JWT": 3}, accepted, "with a claim of the default name or another; a fixed tenant only with the default one")
	require.Equal(t, "false", asMap(t, b.section(t, "Parameters")["AllowUnauthenticated"])["Default"])
	for _, name := range []string{"JwtIssuer", "JwtAudience", "IamTenant", "FixedTenant"} {
		require.Empty(t, asMap(t, b.section(t, "Parameters")[name])["Default"], "%s has no default that anybody could be let in by", name)
	}
}

func combinations() []callers {
	all := []callers{{}}
	for _, choice := range []func(callers) []callers{
		func(c callers) []callers { d := c; d.issuer = "https://issuer.example"; return []callers{c, d} },
		func(c callers) []callers { d := c; d.audience = "adjourn"; return []callers{c, d} },
		func(c callers) []callers {
			d := c
			c.claim, d.claim = "tenant", "custom:org"
			return []callers{c, d}
		},
		func(c callers) []callers { d := c; d.fixed = "acme"; return []callers{c, d} },
		func(c callers) []callers { d := c; d.iam = "ops"; return []callers{c, d} },
		func(c callers) []callers { d := c; c.open, d.open = "false", "true"; return []callers{c, d} },
	} {
		var next []callers
		for _, c := range all {
			next = append(next, choice(c)...)
		}
		all = next
	}
	return all
}

// evaluation computes what CloudFormation makes of a template's functions.
type evaluation struct {
	t          *testing.T
	bundle     bundle
	parameters map[string]string
}

// refusals are the descriptions of the assertions that do not hold.
func (e evaluation) refusals() []string {
	var words []string
	rules := e.bundle.section(e.t, "Rules")
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		rule := asMap(e.t, rules[name])
		if !e.truth(rule["RuleCondition"]) {
			continue
		}
		for _, a := range asList(e.t, rule["Assertions"]) {
			if a := asMap(e.t, a); !e.truth(a["Assert"]) {
				words = append(words, a["AssertDescription"].(string))
			}
		}
	}
	return words
}

func (e evaluation) holds(condition string) bool {
	return e.truth(e.bundle.section(e.t, "Conditions")[condition])
}

func (e evaluation) truth(v any) bool {
	of := asMap(e.t, v)
	require.Len(e.t, of, 1)
	for fn, args := range of {
		switch fn {
		case "Condition":
			return e.holds(args.(string))
		case "Fn::Equals":
			pair := asList(e.t, args)
			return fmt.Sprint(e.value(pair[0])) == fmt.Sprint(e.value(pair[1]))
		case "Fn::Not":
			return !e.truth(asList(e.t, args)[0])
		case "Fn::And":
			return !slices.ContainsFunc(asList(e.t, args), func(a any) bool { return !e.truth(a) })
		case "Fn::Or":
			return slices.ContainsFunc(asList(e.t, args), e.truth)
		}
	}
	require.Fail(e.t, "not known here", "%v", v)
	return false
}

// value is a text, nil for AWS::NoValue, or a map for what is known when it is deployed.
func (e evaluation) value(v any) any {
	of, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if args, ok := of["Fn::If"].([]any); ok {
		if e.holds(args[0].(string)) {
			return e.value(args[1])
		}
		return e.value(args[2])
	}
	if name, ok := of["Ref"].(string); ok {
		if name == "AWS::NoValue" {
			return nil
		}
		if text, ok := e.parameters[name]; ok {
			return text
		}
		if p, ok := e.bundle.section(e.t, "Parameters")[name].(map[string]any); ok {
			return fmt.Sprint(p["Default"])
		}
	}
	if text, ok := of["Fn::Sub"].(string); ok && text == "${MaxWait}s" {
		return fmt.Sprint(e.value(ref("MaxWait"))) + "s"
	}
	return of
}

// TestTemplatePatterns: what a parameter's pattern lets through the functions can
// read, and what they could not is refused before anything is deployed.
func TestTemplatePatterns(t *testing.T) {
	t.Parallel()
	parameters := readBundle(t).section(t, "Parameters")
	takes := func(name, value string) bool {
		p := asMap(t, parameters[name])
		pattern := p["AllowedPattern"].(string)
		require.Regexp(t, `^\^.*\$$`, pattern, "%s: all of the value", name)
		most, bounded := p["MaxLength"].(int)
		return regexp.MustCompile(pattern).MatchString(value) && (!bounded || len(value) <= most)
	}
	people := []string{`{"T024BE7LD/U2147483697":"ana"}`, `{ "T1/U1": "ana@example.com", "T1/U2": "Ben O'Neill" }`, `{"T1/W1":"äöü|1"}`}
	for _, list := range people {
		_, err := httpapi.NewSlack(httpapi.SlackConfig{SigningSecret: "s", People: list})
		require.NoError(t, err, "%s", list)
	}
	policies := []string{`{"default":"prompt"}`, `{"tools":{"rm":"never","refund":"auto"},"default":"prompt","never":"pause"}`, "{\n  \"never\": \"reject\",\n  \"tools\": { \"rm\" : \"never\" }\n}\n"}
	for _, policy := range policies {
		_, err := app.ReadSettings(func(name string) string { return map[string]string{"ADJOURN_POLICY": policy}[name] })
		require.NoError(t, err, "%s", policy)
	}
	for name, values := range map[string]struct{ good, bad []string }{
		"MaxWait":            {[]string{"0", "5", "10", "19", "20"}, []string{"", "-1", "21", "2.5", "5s", "1e1", " 5", "05", "100"}},
		"StepsPerInvocation": {[]string{"1", "9", "16", "100"}, []string{"", "0", "1.5", "101", "1000", "-1", "01"}},
		"RolesClaim":         {[]string{"", "roles", "cognito:groups"}, []string{" ", "a b"}},
		"TenantClaim":        {[]string{"tenant", "custom:org", "https://acme.example/tenant"}, []string{"", " ", "a b"}},
		"FixedTenant":        {[]string{"", "acme", "a-B_9", strings.Repeat("x", 128)}, []string{"a b", "a#b", "../x", "ä", strings.Repeat("x", 129), "a\nb"}},
		"IamTenant":          {[]string{"", "ops"}, []string{"a b", "S#x"}},
		"EventTenant":        {[]string{"default", "a-B_9"}, []string{"", "a b", "a/b", strings.Repeat("x", 129)}},
		"EventTemplate": {
			[]string{"", `{"agent": "clerk", "input": "{{.detail.a}}"}`, "{\n \"agent\": \"a\",\n \"input\": \"x\"\n}\n"},
			[]string{"{{.detail.a}}", "[]", "null", `"input"`, `{"agent": "clerk"}`, `{"input": "` + strings.Repeat("x", 2048) + `"}`},
		},
		"EventSources":     {[]string{"", "shop.orders", "aws.s3,shop"}, []string{",", "a,", "a, b", "a b", " a"}},
		"EventDetailTypes": {[]string{"", "OrderPlaced", "EC2 Instance State-change Notification,Object Created"}, []string{",", "a,", "a, b", " a", "a ", "a,,b"}},
		"EventBus":         {[]string{"default", "orders", "arn:aws:events:eu-west-1:123456789012:event-bus/orders"}, []string{"", "a b", "a*"}},
		"SlackChannel":     {[]string{"", "C024BE91L"}, []string{"#deploys", "deploys", "C024 BE91L"}},
		"SlackTenant":      {[]string{"default", "a-B_9"}, []string{"", "a b", "a/b"}},
		"SlackPeople": {
			append([]string{""}, people...),
			[]string{"ana", "{}", `["T1/U1"]`, `{"T1":"ana"}`, `{"T1/U1","ana"}`, `{"T1/U1":"ana",}`, `{"T1/U1":""}`, `{"T1/U1":" ana"}`, `{"T1/U1":"ana "}`, `{"T1/U1":1}`, `{"T1/U1":"ana"`, `{T1/U1:"ana"}`, "{\"T1/U1\":\"ana\"}\n"},
		},
		"ToolPolicy": {
			append([]string{""}, policies...),
			[]string{"{}", "policy.json", `{"tools":{"rm":"nevr"}}`, `{"tools":{"rm":"Never"}}`, `{"tool":{"rm":"never"}}`, `{"tools":{"rm":"never"}`, `{"tools":{"rm":"never"},}`, `{"tools":"never"}`, `{"default":"ask"}`, `{"default":null}`, `{"never":"auto"}`, `{"default":"prompt"} x`, `{"tools":{}}`},
		},
	} {
		require.True(t, takes(name, fmt.Sprint(asMap(t, parameters[name])["Default"])), "%s: its default", name)
		for _, value := range values.good {
			require.True(t, takes(name, value), "%s=%.60q", name, value)
		}
		for _, value := range values.bad {
			require.False(t, takes(name, value), "%s=%.60q", name, value)
		}
	}

	env := map[string]string{"ADJOURN_TABLE": "t", "ADJOURN_BUCKET": "b", "ADJOURN_QUEUE_URL": "https://sqs/1/steps"}
	read := func(name, value string) error {
		_, err := serverless.ReadSettings(func(n string) string {
			if n == name {
				return value
			}
			return env[n]
		})
		return err
	}
	for n := range 200 {
		text := fmt.Sprint(n)
		require.Equal(t, takes("MaxWait", text), read("ADJOURN_MAX_WAIT", text+"s") == nil, text)
		if takes("StepsPerInvocation", text) {
			require.NoError(t, read("ADJOURN_STEPS_PER_INVOCATION", text))
		}
	}
	for c := rune(1); c < 0x180; c++ {
		for _, name := range []string{"FixedTenant", "IamTenant", "EventTenant"} {
			variable := map[string]string{"FixedTenant": "ADJOURN_FIXED_TENANT", "IamTenant": "ADJOURN_IAM_TENANT", "EventTenant": "ADJOURN_EVENT_TENANT"}[name]
			require.Equal(t, takes(name, "a"+string(c)), read(variable, "a"+string(c)) == nil, "%s: %q", name, c)
		}
	}
}
