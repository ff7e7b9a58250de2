//go:build aws

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/adjourn/adjourn/internal/awscall"
	"github.com/adjourn/adjourn/internal/terminaltest"
)

const key = "sk-that-nobody-may-see"

// world is a local AWS with an issuer, and a folder of somebody who deploys there.
type world struct {
	t       *testing.T
	account *account
	issuer  string // of callers' tokens
	other   string // serves documents that name issuer
	dir     string
	config  string
	build   string
	// template is the repository's, without what MiniStack refuses to make.
	template string
	arch     string
	env      []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	at := os.Getenv("ADJOURN_TEST_AWS")
	require.NotEmpty(t, at, "run this by localstack/emulators")
	w := &world{t: t, dir: t.TempDir(), arch: map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]}
	for _, name := range []string{"PATH", "HOME", "GOCACHE", "GOPATH", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "LANG"} {
		if value, set := os.LookupEnv(name); set {
			w.env = append(w.env, name+"="+value)
		}
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": at, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "SAM_CLI_TELEMETRY": "0", "TERM": "xterm", "NO_COLOR": "1",
		"NO_PROXY": "127.0.0.1,localhost",
	} {
		w.env = append(w.env, name+"="+value)
		if strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, value)
		}
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	w.env = append(w.env, "ADJOURN_SAM="+filepath.Join(root, ".tools/sam/bin/sam"))
	w.config, w.build = filepath.Join(w.dir, "samconfig.toml"), filepath.Join(w.dir, "build")
	w.adapt(root)
	shipped, err := os.ReadFile("../../samconfig.toml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.config, shipped, 0o644))
	w.account, err = openAccount(t.Context(), "us-east-1")
	require.NoError(t, err)

	serve := func() string {
		documents := httptest.NewServer(http.FileServer(http.Dir(w.dir + "/documents")))
		t.Cleanup(documents.Close)
		return documents.URL
	}
	w.issuer, w.other = serve(), serve()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(w.dir, "issuer"), "../../localstack/issuer").CombinedOutput()
	require.NoError(t, err, "%s", out)
	w.mint("documents", filepath.Join(w.dir, "documents"))
	return w
}

// adapt copies the template without alarms over a query of metrics, which MiniStack
// does not know (localstack/deploy-local leaves them out, too), and with a path
// to the code that holds from anywhere.
func (w *world) adapt(root string) {
	w.t.Helper()
	raw, err := os.ReadFile("../../template.yaml")
	require.NoError(w.t, err)
	var kept strings.Builder
	for block := range strings.SplitSeq(string(raw), "\n\n") {
		if strings.Contains(block, "Type: AWS::CloudWatch::Alarm") && strings.Contains(block, "\n      Metrics:") {
			continue
		}
		kept.WriteString(block + "\n\n")
	}
	text := strings.Replace(kept.String(), "CodeUri: .\n", "CodeUri: "+root+"\n", 1)
	require.NotEqual(w.t, kept.String(), text)
	w.template = filepath.Join(w.dir, "template.yaml")
	require.NoError(w.t, os.WriteFile(w.template, []byte(text), 0o644))
}

// mint runs the test issuer.
func (w *world) mint(args ...string) string {
	w.t.Helper()
	flags := []string{args[0], "-key", filepath.Join(w.dir, "key.json"), "-issuer", w.issuer, "-audience", "shop"}
	out, err := exec.CommandContext(w.t.Context(), filepath.Join(w.dir, "issuer"), append(flags, args[1:]...)...).CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// sits runs make deploy, or another program, at a terminal in the root of the repository.
func (w *world) sits(args ...string) *terminaltest.Person {
	w.t.Helper()
	return terminaltest.Sit(w.t, terminaltest.Program{Args: args, Dir: "../..", Env: w.env, Rows: 50, Columns: 160})
}

func (w *world) makeDeploy(more ...string) []string {
	flags := fmt.Sprintf("DEPLOYFLAGS=-config %s -build-dir %s -template %s", w.config, w.build, w.template)
	return append([]string{"make", "--no-print-directory", "deploy", flags, "REGION=us-east-1", "Architecture=" + w.arch, "Lab=true"}, more...)
}

func (w *world) text() string {
	w.t.Helper()
	raw, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	return string(raw)
}

// stacks are those that CloudFormation has, with their statuses.
func (w *world) stacks() map[string]string {
	w.t.Helper()
	var found struct {
		Stacks []struct{ StackName, StackStatus string } `xml:"DescribeStacksResult>Stacks>member"`
	}
	require.NoError(w.t, w.account.Form(w.t.Context(), "cloudformation", url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}}, &found))
	all := map[string]string{}
	for _, s := range found.Stacks {
		all[s.StackName] = s.StackStatus
	}
	return all
}

func (w *world) secret(name, text string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]string{"Name": name, "SecretString": text, "ClientRequestToken": fmt.Sprintf("%032d", len(name))})
	require.NoError(w.t, err)
	_, err = w.account.Do(w.t.Context(), awscall.Request{
		Service: "secretsmanager", Target: "secretsmanager.CreateSecret", ContentType: "application/x-amz-json-1.1", Body: body,
	})
	require.NoError(w.t, err)
}

// answers asks the deployed API with and without a token.
func (w *world) answers(stack string) {
	w.t.Helper()
	there, err := w.account.findStack(w.t.Context(), stack)
	require.NoError(w.t, err)
	require.NotNil(w.t, there)
	at := os.Getenv("ADJOURN_TEST_AWS") + "/_aws/execute-api/" + there.Outputs["ApiId"]
	ask := func(method, path, body, token string) int {
		req, err := http.NewRequestWithContext(w.t.Context(), method, at+path, strings.NewReader(body))
		require.NoError(w.t, err)
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(w.t, err)
		require.NoError(w.t, resp.Body.Close())
		return resp.StatusCode
	}
	token := w.mint("token")
	require.Equal(w.t, http.StatusUnauthorized, ask(http.MethodGet, "/sessions", "", ""))
	require.Equal(w.t, http.StatusOK, ask(http.MethodGet, "/sessions", "", token))
	require.Equal(w.t, http.StatusAccepted, ask(http.MethodPost, "/sessions", `{"agent": "janitor", "input": "."}`, token))
}

// One build serves both: what is deployed by questions, then by SAM's own.
func TestDeploy_at_a_terminal(t *testing.T) {
	w := newWorld(t)
	w.secret("adjourn-models", `{"OPENAI_API_KEY": "`+key+`"}`)
	w.secret("adjourn-empty", `{"OTHER": "`+key+`"}`)
	w.secret("adjourn-text", key)
	var made struct {
		Arn string `xml:"CreateTopicResult>TopicArn"`
	}
	require.NoError(t, w.account.Form(t.Context(), "sns", url.Values{"Action": {"CreateTopic"}, "Version": {"2010-03-31"}, "Name": {"alarms"}}, &made))

	person := w.sits(w.makeDeploy()...)
	person.Sees("Stack adjourn in us-east-1, account 000000000000: a new stack.")
	type try struct{ typed, seen string }
	wrong := func(prompt string, tries ...try) {
		t.Helper()
		for _, try := range tries {
			person.Sees(prompt).Types(try.typed + "\n").Sees("No: ").Sees(try.seen)
		}
		person.Sees(prompt)
	}
	wrong("JwtIssuer: ",
		try{"", "without an issuer"},
		try{"login.example.com", "it begins with https://"},
		try{"ftp://login.example.com", "is not https://"},
		try{"https://login.example.com/?a=b", "a query"},
		try{"http://127.0.0.1:1", "cannot be read"},
		try{w.issuer + "/nothing", "answers 404"},
		try{w.issuer + "/", "and the slash at the end counts"},
		try{w.other, `calls itself "` + w.issuer + `"`})
	person.Types(w.issuer + "\n")
	wrong("JwtAudience: ", try{"", "without an audience"}, try{"shop,,other", "none is empty"}, try{"shop, other", "no spaces"})
	person.Types("shop\n")
	wrong("TenantClaim [tenant]: ", try{"a b", "no name of one claim"}, try{"iss", "says something else"})
	person.Types("\n")
	wrong("Model [none]: ", try{"gpt-5-mini", "names no provider"}, try{"acme:gpt", `no provider "acme"`})
	person.Types("openai:gpt-5-mini\n")
	wrong("ModelSecret [none]: ",
		try{"", "openai:gpt-5-mini needs a key"}, try{"nowhere", "there is no secret"},
		try{"adjourn-empty", "has no OPENAI_API_KEY"}, try{"adjourn-text", "does not hold a JSON object"})
	person.Types("adjourn-models\n")
	wrong("AlarmTopicArn [none]: ",
		try{"me@example.com", "is no topic's ARN"}, try{"arn:aws:sns:eu-west-1:000000000000:alarms", "the topic is in eu-west-1"},
		try{made.Arn + "s", "there is no topic"})
	person.Types(made.Arn + "\n")
	person.Sees("invocations at once").Sees("Deployed: https://")
	require.Zero(t, person.Leaves(), person.All())
	require.NotContains(t, person.All(), key)
	w.answers("adjourn")

	kept := w.text()
	require.NotContains(t, kept, key)
	for _, line := range []string{
		"# What sam build, validate and deploy are told", `region = "us-east-1"`, "[default.deploy.parameters.parameter_overrides]",
		`JwtIssuer = "` + w.issuer + `"`, `JwtAudience = "shop"`, `TenantClaim = "tenant"`, `ModelSecret = "adjourn-models"`,
	} {
		require.Contains(t, kept, line)
	}

	// Ctrl-C in the middle of the questions.
	person = w.sits("bin/deploy", "-config", w.config, "-build-dir", w.build, "-template", w.template)
	person.Sees(": an update.").Sees("JwtIssuer [" + w.issuer + "]: ").Types("\n").Sees("JwtAudience [shop]: ").Types("other\n")
	person.Sees("TenantClaim [tenant]: ").Types("\x03").Sees("nothing was changed")
	require.Equal(t, 130, person.Leaves())
	require.Equal(t, kept, w.text())

	// Enter six times.
	person = w.sits(w.makeDeploy()...)
	for _, q := range questions {
		person.Sees(q.name + " [").Types("\n")
	}
	person.Sees("Deployed: https://")
	require.Zero(t, person.Leaves(), person.All())
	require.Equal(t, kept, w.text())
	w.answers("adjourn")

	t.Run("sam deploy --guided", w.guided)
	t.Run("without a terminal", w.scripted)
}

// guided: Enter on everything ends in the template's refusal; right answers deploy.
func (w *world) guided(t *testing.T) {
	old := w.text()
	shipped, err := os.ReadFile("../../samconfig.toml")
	require.NoError(t, err)
	fresh := strings.Replace(string(shipped), `stack_name = "adjourn"`, `stack_name = "guided"`, 1)
	require.NoError(t, os.WriteFile(w.config, []byte(fresh), 0o644))
	t.Cleanup(func() { require.NoError(t, os.WriteFile(w.config, []byte(old), 0o644)) })
	before := w.stacks()
	sit := func() *terminaltest.Person {
		sam := []string{"../.tools/sam/bin/sam", "deploy", "--guided", "--template-file", filepath.Join(w.build, "template.yaml"), "--config-file", w.config}
		return terminaltest.Sit(t, terminaltest.Program{Args: sam, Dir: "../../docs", Env: append(w.env, "AWS_DEFAULT_REGION=us-east-1"), Rows: 50, Columns: 160})
	}
	through := func(person *terminaltest.Person, answers map[string]string) {
		person.Sees("Stack Name").Types("\n").Sees("AWS Region").Types("\n")
		for _, name := range w.order(t) {
			person.Sees("Parameter " + name).Types(answers[name] + "\n")
		}
		for _, prompt := range []string{"Confirm changes before deploy", "Allow SAM CLI IAM role creation", "Disable rollback", "Save arguments", "SAM configuration file", "SAM configuration environment"} {
			person.Sees(prompt).Types("\n")
		}
	}

	person := sit()
	through(person, nil)
	person.Sees("JwtIssuer is empty")
	require.NotZero(t, person.Leaves())
	after := w.stacks()
	if status, left := after["guided"]; left {
		require.Equal(t, "REVIEW_IN_PROGRESS", status, "a stack with resources")
		delete(after, "guided")
	}
	require.Equal(t, before, after)

	require.NoError(t, os.WriteFile(w.config, []byte(fresh), 0o644))
	person = sit()
	through(person, map[string]string{"JwtIssuer": w.issuer, "JwtAudience": "shop", "Architecture": w.arch, "Lab": "true"})
	person.Sees("Deploy this changeset? [y/N]").Types("y\n").Sees("Successfully created/updated stack")
	require.Zero(t, person.Leaves(), person.All())
	w.answers("guided")
}

// order returns the parameters as they stand in the template that was built.
func (w *world) order(t *testing.T) (names []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.build, "template.yaml"))
	require.NoError(t, err)
	var template struct {
		Parameters yaml.Node `yaml:"Parameters"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &template))
	for i := 0; i < len(template.Parameters.Content); i += 2 {
		names = append(names, template.Parameters.Content[i].Value)
	}
	return names
}

// scripted: without a terminal nothing is asked.
func (w *world) scripted(t *testing.T) {
	t.Run("what is missing is listed", func(t *testing.T) {
		config := filepath.Join(t.TempDir(), "samconfig.toml")
		cmd := exec.CommandContext(t.Context(), "bin/deploy", "-config", config)
		cmd.Dir, cmd.Env = "../..", append(w.env, "REGION=us-east-1", "STACK=scripted", "Model=acme:gpt")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 2, exit.ExitCode())
		for _, line := range []string{"JwtIssuer=…  without an issuer", "JwtAudience=…  without an audience", `no provider "acme"`} {
			require.Contains(t, string(out), line)
		}
		require.NoFileExists(t, config)
	})
	t.Run("what is given is deployed", func(t *testing.T) {
		args := w.makeDeploy("MaxWait=0")
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "../..", w.env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "Deployed: https://")
		require.Contains(t, w.text(), `MaxWait = "0"`)
	})
}
