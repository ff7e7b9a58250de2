package serverless_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

func registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "hello", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{Text: "hello"}, nil }),
	}}})
}

const (
	queueURL = "https://sqs.eu-west-1.amazonaws.com/1/steps"
	deadURL  = "https://sqs.eu-west-1.amazonaws.com/1/dead"
)

func set(more ...string) func(string) string {
	env := map[string]string{"ADJOURN_TABLE": "state", "ADJOURN_BUCKET": "blobs", "ADJOURN_QUEUE_URL": queueURL}
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return func(name string) string { return env[name] }
}

func TestReadSettings(t *testing.T) {
	t.Parallel()
	s, err := serverless.ReadSettings(set())
	require.NoError(t, err)
	require.Equal(t, serverless.Settings{
		Settings: app.Settings{Data: app.DefaultData, StepsPerInvocation: 1, Lease: 20 * time.Second, LogLevel: slog.LevelInfo},
		Table:    "state", Bucket: "blobs", QueueURL: queueURL, TenantClaim: "tenant", EventTenant: session.DefaultTenant, MaxWait: 5 * time.Second,
	}, s)

	s, err = serverless.ReadSettings(set(
		"ADJOURN_DEAD_LETTERS_URL", deadURL, "ADJOURN_API_ID", "a1", "ADJOURN_TENANT_CLAIM", "custom:org", "ADJOURN_ROLES_CLAIM", "cognito:groups", "ADJOURN_ALLOW_UNAUTHENTICATED", "true",
		"ADJOURN_EVENT_TEMPLATE", "{}", "ADJOURN_EVENT_TENANT", "events", "ADJOURN_STEPS_PER_INVOCATION", "4", "ADJOURN_LEASE", "1m", "ADJOURN_LOG", "off", "ADJOURN_MAX_WAIT", "20s",
	))
	require.NoError(t, err)
	require.Equal(t, serverless.Settings{
		Settings: app.Settings{Data: app.DefaultData, StepsPerInvocation: 4, Lease: time.Minute, LogLevel: app.LogOff},
		Table:    "state", Bucket: "blobs", QueueURL: queueURL, DeadLettersURL: deadURL, APIID: "a1", TenantClaim: "custom:org", RolesClaim: "cognito:groups",
		AllowUnauthenticated: true, EventTemplate: "{}", EventTenant: "events", MaxWait: 20 * time.Second,
	}, s)
	s, err = serverless.ReadSettings(set("ADJOURN_NOTICES", ",eventbridge", "ADJOURN_NOTICE_QUEUE_URL", queueURL, "ADJOURN_NOTICE_BUS", "people"))
	require.NoError(t, err)
	require.Equal(t, []string{"eventbridge"}, s.Notices.Channels)
	require.Equal(t, queueURL, s.NoticeQueueURL)
	require.Equal(t, "people", s.NoticeBus)
	s, err = serverless.ReadSettings(set("ADJOURN_NOTICES", ",")) // as a stack without channels says it
	require.NoError(t, err)
	require.Empty(t, s.Notices.Channels)
	s, err = serverless.ReadSettings(set("ADJOURN_IAM_TENANT", "ops"))
	require.NoError(t, err)
	require.Equal(t, "ops", s.IAMTenant)
	s, err = serverless.ReadSettings(set("ADJOURN_FIXED_TENANT", "acme", "ADJOURN_ALLOW_UNAUTHENTICATED", "false"))
	require.NoError(t, err)
	require.Equal(t, "acme", s.FixedTenant)
	s, err = serverless.ReadSettings(set("ADJOURN_MAX_WAIT", "0s"))
	require.NoError(t, err)
	require.Zero(t, s.MaxWait)
	s, err = serverless.ReadSettings(set("ADJOURN_ALLOW_UNAUTHENTICATED", "false"))
	require.NoError(t, err)
	require.False(t, s.AllowUnauthenticated)
}

func TestReadSettings_every_mistake_is_told_at_once(t *testing.T) {
	t.Parallel()
	_, err := serverless.ReadSettings(func(string) string { return "" })
	for _, name := range []string{"ADJOURN_TABLE", "ADJOURN_BUCKET", "ADJOURN_QUEUE_URL"} {
		require.ErrorContains(t, err, name)
	}
	require.ErrorIs(t, err, app.ErrInvalidSetting)
	wrong := map[string][]string{
		"ADJOURN_NOTICE_QUEUE_URL": {"notices", "https://host"}, "ADJOURN_NOTICES": {"pigeon", "webhook"},
		"ADJOURN_QUEUE_URL": {"steps", "sqs://x/y", "https://", "https://host", "https://host/", "%"}, "ADJOURN_DEAD_LETTERS_URL": {"dead", "/x"},
		"ADJOURN_ALLOW_UNAUTHENTICATED": {"yes", "1", "TRUE", "True", "t", " true"}, "ADJOURN_IAM_TENANT": {"a b", "../x"}, "ADJOURN_FIXED_TENANT": {"a b", "a/b", "ä"}, "ADJOURN_EVENT_TENANT": {"a/b"},
		"ADJOURN_MAX_WAIT": {"5", "-1s", "21s", "1500ms", "long"}, "ADJOURN_LEASE": {"soon"}, "ADJOURN_STEPS_PER_INVOCATION": {"0"}, "ADJOURN_LOG": {"loud"},
	}
	var all []string
	for name, values := range wrong {
		for _, value := range values {
			_, err := serverless.ReadSettings(set(name, value))
			require.ErrorIs(t, err, app.ErrInvalidSetting, "%s=%s", name, value)
			require.ErrorContains(t, err, name)
		}
		all = append(all, name, values[0])
	}
	_, err = serverless.ReadSettings(set(all...))
	for name := range wrong {
		require.ErrorContains(t, err, name)
	}
}

// Callers that could be let in by one rule or by another are let in by none.
func TestReadSettings_one_word_about_callers(t *testing.T) {
	t.Parallel()
	for name, both := range map[string][]string{
		"ADJOURN_FIXED_TENANT":          {"ADJOURN_FIXED_TENANT", "acme", "ADJOURN_TENANT_CLAIM", "tenant"},
		"ADJOURN_IAM_TENANT":            {"ADJOURN_FIXED_TENANT", "acme", "ADJOURN_IAM_TENANT", "acme"},
		"ADJOURN_ALLOW_UNAUTHENTICATED": {"ADJOURN_ALLOW_UNAUTHENTICATED", "true", "ADJOURN_FIXED_TENANT", "acme"},
		"callers that somebody":         {"ADJOURN_ALLOW_UNAUTHENTICATED", "true", "ADJOURN_IAM_TENANT", "acme"},
	} {
		_, err := serverless.ReadSettings(set(both...))
		require.ErrorIs(t, err, app.ErrInvalidSetting)
		require.ErrorContains(t, err, name)
	}
}

// cloud answers whatever the SDK asks with an error, and remembers what it was.
type cloud struct {
	*httptest.Server
	asked chan string
}

func newCloud(t *testing.T) (*cloud, func(context.Context) (aws.Config, error)) {
	t.Helper()
	c := &cloud{asked: make(chan string, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.asked <- r.Method + " " + r.Host + r.URL.Path + " " + r.Header.Get("X-Amz-Target") + " " + string(body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if strings.Contains(r.Header.Get("X-Amz-Target"), "SendMessage") {
			_, _ = io.WriteString(w, `{"MessageId":"m"}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"ValidationException","message":"no"}`)
	}))
	t.Cleanup(c.Close)
	return c, func(context.Context) (aws.Config, error) {
		return aws.Config{
			Region: "eu-west-1", BaseEndpoint: &c.URL,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
			}),
		}, nil
	}
}

func (c *cloud) next(t *testing.T) string {
	t.Helper()
	select {
	case asked := <-c.asked:
		return asked
	default:
		t.Fatal("nothing was asked")
		return ""
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	c, load := newCloud(t)
	var log bytes.Buffer
	var level slog.Level
	a, err := serverless.Open(t.Context(), serverless.Config{
		Registry: registry, NeedDeadLetters: true, AWS: load, Env: set("ADJOURN_DEAD_LETTERS_URL", deadURL),
		Log: func(l slog.Level) *slog.Logger { level = l; return slog.New(slog.NewJSONHandler(&log, nil)) },
	})
	require.NoError(t, err)
	require.Empty(t, c.asked, "opening asks nothing")
	require.Equal(t, slog.LevelInfo, level)
	require.NotNil(t, a.Log)
	require.NotNil(t, a.Runtime)
	require.NotNil(t, a.Registry)
	require.WithinDuration(t, time.Now(), a.Now(), time.Minute)

	require.NoError(t, a.Queue.Send(t.Context(), journal.NewWake(session.Key{Tenant: "acme", ID: "s1"}, 2, journal.WakeStep)))
	require.Contains(t, c.next(t), queueURL)
	require.NoError(t, a.DeadLetters.Send(t.Context(), journal.NewWake(session.Key{Tenant: "acme", ID: "s1"}, 2, journal.WakeStep)))
	require.Contains(t, c.next(t), deadURL)
	_, err = a.Runtime.Session(t.Context(), session.Key{Tenant: "acme", ID: "s1"})
	require.Error(t, err)
	require.Contains(t, c.next(t), `"TableName":"state"`)
}

func TestOpen_large_values_go_to_the_bucket_by_path(t *testing.T) {
	t.Parallel()
	c, load := newCloud(t)
	var parts app.Parts
	_, err := serverless.Open(t.Context(), serverless.Config{
		Registry: registry, AWS: load, Env: set(), Decorate: func(p app.Parts) app.Parts { parts = p; return p },
	})
	require.NoError(t, err)
	require.Nil(t, parts.DeadLetters, "an interface that holds nothing is nil")
	big := make([]byte, 400<<10)
	for i := range big {
		big[i] = byte('a' + i*7919%26)
	}
	record := journal.ToolRecord{Call: "c1-0", Result: &llm.ToolResult{CallID: "c1-0", Status: llm.ResultSuccess, Output: json.RawMessage(strconv.Quote(string(big)))}}
	_, err = parts.Store.Update(t.Context(), session.Key{Tenant: "acme", ID: "s1"}, store.ToolItem(record, 0))
	require.Error(t, err, "this cloud takes nothing")
	require.Contains(t, c.next(t), "PUT "+strings.TrimPrefix(c.URL, "http://")+"/blobs/")
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	_, load := newCloud(t)
	bad := errors.New("two agents of one name")
	broken := func() (*agent.Registry, error) { return nil, bad }
	for name, c := range map[string]struct {
		cfg   serverless.Config
		wants []string
	}{
		"no registry":        {serverless.Config{Env: set(), AWS: load}, []string{"no registry"}},
		"settings, registry": {serverless.Config{Registry: broken, Env: func(string) string { return "" }, AWS: load}, []string{"ADJOURN_TABLE", bad.Error()}},
		"no dead letters":    {serverless.Config{Registry: registry, NeedDeadLetters: true, Env: set(), AWS: load}, []string{"ADJOURN_DEAD_LETTERS_URL"}},
		"no region":          {serverless.Config{Registry: registry, Env: set(), AWS: func(context.Context) (aws.Config, error) { return aws.Config{}, nil }}, []string{"AWS_REGION"}},
		"no configuration":   {serverless.Config{Registry: registry, Env: set(), AWS: func(context.Context) (aws.Config, error) { return aws.Config{}, bad }}, []string{bad.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serverless.Open(t.Context(), c.cfg)
			for _, want := range c.wants {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestOpen_decorated_ports_are_used(t *testing.T) {
	t.Parallel()
	_, load := newCloud(t)
	sent := &line{}
	a, err := serverless.Open(t.Context(), serverless.Config{
		Registry: registry, AWS: load, Env: set(), Now: func() time.Time { return time.Unix(7, 0) },
		Decorate: func(p app.Parts) app.Parts { p.Queue = sent; return p },
	})
	require.NoError(t, err)
	require.Same(t, sent, a.Queue)
	require.Equal(t, time.Unix(7, 0), a.Now())
}

type line struct{ queue.Queue }

// TestLinksNoEmbeddedEngine reads the imports of what the functions link: SQLite
// alone would double their size. That only the event function links text/template's
// execution is held by TestSize_of_each_function in functions.
func TestLinksNoEmbeddedEngine(t *testing.T) {
	t.Parallel()
	const module = "github.com/adjourn/adjourn/"
	root := filepath.Join("..", "..", "..")
	seen := map[string]bool{}
	var visit func(room string)
	visit = func(room string) {
		if seen[room] {
			return
		}
		seen[room] = true
		files, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, room)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				require.NoError(t, err)
				for _, heavy := range []string{module + "pkg/sqlite", module + "pkg/cli", module + "pkg/app/embedded", "modernc.org/", "github.com/spf13/", "html/template"} {
					if imported == "html/template" && strings.Contains(path, "pkg/httpapi/internal/link") {
						continue // executed by the functions that serve links, and by no other
					}
					if imported == heavy || strings.HasPrefix(imported, heavy) && strings.HasSuffix(heavy, "/") {
						t.Errorf("%s imports %s", path, imported)
					}
				}
				if below, ours := strings.CutPrefix(imported, module); ours {
					visit(below)
				}
			}
		}
	}
	for _, f := range []string{"start", "step", "resume", "submit", "query", "event", "sweep"} {
		visit("functions/" + f)
	}
	require.True(t, seen["pkg/app/serverless"])
	require.True(t, seen["pkg/store/dynamostore"])
}
