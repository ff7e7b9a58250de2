package lambdafn

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]int64{"128": 107_374_160, "10240": 8_589_934_560, "": 0, "much": 0, "-1": 0, "0": 0, "99999999999": 0} {
		env := map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": size}
		require.InDelta(t, want, heapLimit(func(name string) string { return env[name] }), 100, size)
		env["GOMEMLIMIT"] = "1GiB"
		require.Zero(t, heapLimit(func(name string) string { return env[name] }), "what the environment says counts")
	}
}

func TestConfigOf(t *testing.T) {
	t.Parallel()
	c := configOf(&serverless.App{Settings: serverless.Settings{
		APIID: "a1", TenantClaim: "org", RolesClaim: "groups", FixedTenant: "acme", IAMTenant: "ops", AllowUnauthenticated: true, MaxWait: 7 * time.Second, EventTemplate: "{}", EventTenant: "events",
		Settings: app.Settings{Notices: app.Notices{SlackSigningSecret: "s", SlackPeople: "{}", SlackTenant: "acme", SlackSignedIn: true}},
	}})
	require.Equal(t, Config{
		APIID: "a1", TenantClaim: "org", RolesClaim: "groups", FixedTenant: "acme", IAMTenant: "ops", AllowUnauthenticated: true, MaxWait: 7 * time.Second, EventTemplate: "{}", EventTenant: "events",
		Slack: httpapi.SlackConfig{SigningSecret: "s", People: "{}", Tenant: "acme", SignedIn: true},
	}, c)
}

func TestSweepAtOnce(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]int{"128": 2, "256": 4, "1024": 16, "10240": 32, "": 0} {
		require.Equal(t, want, sweepAtOnce(memorySize(func(string) string { return size })), size)
	}
}

// opened opens a program as its function does, in an environment.
func opened(p program, more ...string) (Handler, error) {
	env := map[string]string{"ADJOURN_TABLE": "t", "ADJOURN_BUCKET": "b", "ADJOURN_QUEUE_URL": "https://sqs/1/steps", "ADJOURN_API_ID": "a1"}
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return p.open(serverless.Config{
		Registry: func() (*agent.Registry, error) {
			return agent.NewRegistry(agent.Config{Models: agent.Models{"scripted": lab.Open}, Agents: []agent.Agent{lab.Agent()}})
		},
		Env: func(name string) string { return env[name] },
		AWS: func(context.Context) (aws.Config, error) { return aws.Config{Region: "eu-west-1"}, nil },
	})
}

const anyRequest = `{"version":"2.0","rawPath":"/sessions","requestContext":{"requestId":"gw-1","apiId":"a1","routeKey":"GET /sessions","http":{"method":"GET"}}}`

// TestOpen_wrong_settings: the functions behind the API say with each answer that it
// is the settings, and start, resume and submit nothing.
func TestOpen_wrong_settings(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(Config) (Handler, error){"start": NewStart, "resume": NewResume, "submit": NewSubmit, "query": NewQuery} {
		for _, wrong := range [][]string{
			{"ADJOURN_MAX_WAIT", "2.5s"},
			{"ADJOURN_API_ID", ""},
			{"ADJOURN_ALLOW_UNAUTHENTICATED", "yes"},
			{"ADJOURN_TABLE", ""},
			{"ADJOURN_FIXED_TENANT", "acme", "ADJOURN_TENANT_CLAIM", "tenant"},
		} {
			h, err := opened(program{build: build, refuse: refuseHTTP}, wrong...)
			require.ErrorContains(t, err, wrong[0], "the log has it")
			raw, err := h.Invoke(t.Context(), []byte(anyRequest))
			require.NoError(t, err, name)
			var response events.APIGatewayV2HTTPResponse
			require.NoError(t, json.Unmarshal(raw, &response))
			require.Equal(t, 500, response.StatusCode)
			require.Equal(t, client.MediaProblem, response.Headers["Content-Type"])
			var problem client.Problem
			require.NoError(t, json.Unmarshal([]byte(response.Body), &problem))
			require.Equal(t, "misconfigured", problem.Code)
			require.Equal(t, "gw-1", problem.RequestID)
			require.NotContains(t, response.Body, wrong[0], "who asks is not told what")
			_, err = h.Invoke(t.Context(), []byte(`{"agent":"lab","input":"x"}`))
			require.ErrorIs(t, err, errNotHTTP)
		}
	}
}

// TestOpen_events_fail_with_the_reason: it is kept beside the event, and the API
// never meets what is for events alone.
func TestOpen_events_fail_with_the_reason(t *testing.T) {
	t.Parallel()
	event := program{build: NewEvent, refuse: refuseEvents}
	for name, wrong := range map[string]string{
		"ADJOURN_EVENT_TEMPLATE": `{"agent": "lab", "input": "{{.detail"}`, "ADJOURN_EVENT_TENANT": "a b", "ADJOURN_LEASE": "soon",
	} {
		h, err := opened(event, name, wrong)
		require.ErrorContains(t, err, name)
		for range 3 {
			_, err = h.Invoke(t.Context(), []byte(`{"agent":"lab","input":"x"}`))
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, "other settings")
		}
	}
	h, err := opened(event, "ADJOURN_API_ID", "", "ADJOURN_EVENT_TEMPLATE", "")
	require.NoError(t, err, "it has no API")
	require.NotNil(t, h)
	h, err = opened(program{build: NewQuery, refuse: refuseHTTP}, "ADJOURN_EVENT_TEMPLATE", "{")
	require.NoError(t, err)
	require.IsType(t, &proxy{}, h)
}

// TestOpen_the_chain_waits: a process that cannot work ends, and its messages stay.
func TestOpen_the_chain_waits(t *testing.T) {
	t.Parallel()
	h, err := opened(program{build: NewStep}, "ADJOURN_STEPS_PER_INVOCATION", "0")
	require.ErrorContains(t, err, "ADJOURN_STEPS_PER_INVOCATION")
	require.Nil(t, h)
	h, err = opened(program{build: NewSweep, deadLetters: true})
	require.ErrorContains(t, err, "ADJOURN_DEAD_LETTERS_URL")
	require.Nil(t, h)
	h, err = opened(program{build: NewStep})
	require.NoError(t, err)
	require.NotNil(t, h)
}
