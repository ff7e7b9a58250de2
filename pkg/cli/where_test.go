package cli_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// plain runs a command with nothing said about where.
func (b *bench) plain(args ...string) result {
	b.t.Helper()
	return b.runIn(b.t.Context(), "", args...)
}

func TestWhere(t *testing.T) {
	t.Parallel()
	const server = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		code int
		says string
	}{
		"both":                     {nil, []string{"--url", server, "--data", "x.db", "sessions"}, 2, "cannot go together"},
		"empty url":                {nil, []string{"--url", "", "sessions"}, 2, "--url is empty"},
		"no url":                   {nil, []string{"--url", "127.0.0.1:8420", "sessions"}, 2, "http://127.0.0.1:8420"},
		"password in the url":      {nil, []string{"--url", "https://ada:secret@example.com", "sessions"}, 2, "a token goes into ADJOURN_TOKEN, or into a file that --token-file names"},
		"password, and no session": {nil, []string{"--url", "https://ada:secret@example.com", "resume"}, 2, "a token goes into"},
		"password, elsewhere":      {map[string]string{"ADJOURN_URL": "https://ada:secret@example.com"}, []string{"work"}, 2, "ADJOURN_URL: the URL holds"},
		"token file for nobody":    {nil, []string{"--token-file", "x", "sessions"}, 2, "--token-file belongs to a server"},
		"token file missing":       {nil, []string{"--url", server, "--token-file", "/does/not/exist", "sessions"}, 2, "no such file"},
		"unencrypted":              {map[string]string{"ADJOURN_TOKEN": "secret"}, []string{"--url", "http://example.com", "sessions"}, 2, "--allow-plain-http"},
		"two lines of token":       {map[string]string{"ADJOURN_TOKEN": "se\ncret"}, []string{"--url", server, "sessions"}, 2, "token"},
		"work":                     {nil, []string{"--url", server, "work"}, 2, "this machine only: leave out --url"},
		"demo":                     {nil, []string{"--url", server, "demo"}, 2, "this machine only"},
		"agents":                   {nil, []string{"--url", server, "agents"}, 2, "this machine only"},
		"dev":                      {nil, []string{"--url", server, "dev"}, 2, "this machine only"},
		"work by environment":      {map[string]string{"ADJOURN_URL": server}, []string{"work"}, 2, "ADJOURN_URL says " + server},
		"nobody there":             {nil, []string{"--url", server, "sessions"}, 1, "adjourn dev"},
		"bad setting":              {map[string]string{"ADJOURN_LEASE": "x"}, []string{"--url", server, "sessions"}, 2, "ADJOURN_LEASE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for k, v := range c.env {
				b.env[k] = v
			}
			r := b.plain(c.args...).ends(c.code)
			require.Contains(t, r.stderr, c.says)
			require.NotContains(t, r.stderr, "secret")
			require.NotContains(t, r.stderr, "cret")
		})
	}
}

// TestWordsCountBeforeTheEnvironment: what a command says itself is what is meant,
// and what it prints leads to the same place in a shell that says otherwise.
func TestWordsCountBeforeTheEnvironment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	b.run("run", "--agent", "toy", "--session", "far", "[{need: a?}]").ends(10)

	other := setup(t)
	other.program = other.install()
	other.env["ADJOURN_URL"], other.env["ADJOURN_TOKEN"] = b.url, b.token
	require.Contains(t, other.plain("sessions").ends(0).stdout, "far")
	m := other.plain("run", "--agent", "toy", "--session", "two", "-o", "json", "[{need: b?}]").ends(10).manifest()
	require.Contains(t, m.ResumeHint, " --url "+b.url+" resume -c ")
	require.NoDirExists(t, filepath.Dir(other.data))

	m = other.run("run", "--agent", "toy", "--session", "near", "-o", "json", "[{call: deploy, with: {service: a}}, {say: ok}]").ends(10).manifest()
	require.Contains(t, m.ResumeHint, "--data '"+other.data+"'")
	require.NotContains(t, other.run("sessions").ends(0).stdout, "far")
	require.Equal(t, "ok\n", other.shell("ADJOURN_URL="+b.url+"; export ADJOURN_URL; "+m.ResumeHint).ends(0).stdout)

	other.env["ADJOURN_DATA"] = other.data
	require.Contains(t, other.plain("--url", b.url, "sessions").ends(0).stdout, "far")
	require.Contains(t, other.plain("sessions").ends(0).stdout, "far", "a server is meant where both are in the environment")
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	delete(b.env, "ADJOURN_TOKEN")
	path := b.file("my token")
	require.NoError(t, os.WriteFile(path, []byte(b.token+"\n"), 0o600))
	flags := []string{"--url", b.url, "--token-file", path}
	m := b.plain(append(flags, "run", "--agent", "toy", "-o", "json", "[{call: deploy, with: {service: a}}, {say: ok}]")...).ends(10).manifest()
	require.Contains(t, m.ResumeHint, "--token-file '"+path+"'")
	require.NotContains(t, m.ResumeHint, b.token)
	b.program = b.install()
	m = b.plain(append(flags, "run", "--agent", "toy", "-o", "json", "[{call: deploy, with: {service: a}}, {say: ok}]")...).ends(10).manifest()
	b.token = "" // the hint has to do without the environment
	require.Equal(t, "ok\n", b.shell(m.ResumeHint).ends(0).stdout)

	for text, says := range map[string]string{"": "is empty", "a\nb": "more than a token", strings.Repeat("x", 20<<10): "more than a token"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.Contains(t, b.plain(append(flags, "sessions")...).ends(2).stderr, says)
	}
	require.NoError(t, os.WriteFile(path, []byte("adj_wrong"), 0o600))
	r := b.plain(append(flags, "sessions", "-o", "json")...).ends(4)
	require.Equal(t, codes.Unauthenticated, r.manifest().Error.Code)
	require.Contains(t, r.stderr, "the token is that of "+path)
	require.NotContains(t, r.stderr+r.stdout, "adj_wrong")
	r = b.plain("--url", b.url, "sessions").ends(4)
	require.Contains(t, r.stderr, "ADJOURN_TOKEN")
}

// TestServersOfOtherKinds has what answers be something else, or answer something odd.
func TestServersOfOtherKinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		exit   int
		code   string
	}{
		"a web page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello")) }, 1, "unexpected_answer"},
		"sends elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/", http.StatusFound)
		}, 1, "unexpected_answer"},
		"not here":       {http.NotFound, 2, "route_not_found"},
		"forbids":        {status(403), 4, "forbidden"},
		"gateway's 401":  {status(401), 4, "unauthenticated"},
		"breaks":         {status(500), 1, "unexpected_status"},
		"problem":        {problem(409, "already_answered"), 5, "already_answered"},
		"gone":           {problem(410, "expired"), 5, "expired"},
		"unknown code":   {problem(418, "news"), 1, "news"},
		"terminal codes": {problem(409, "session_ended"), 5, "session_ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.answer)
			t.Cleanup(server.Close)
			r := setup(t).plain("--url", server.URL, "show", "s", "-o", "json").ends(c.exit)
			require.Equal(t, c.code, r.manifest().Error.Code)
			require.NotContains(t, r.stderr+r.stdout, "\x1b")
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func problem(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", client.MediaProblem)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"code": "` + code + `", "status": 1, "detail": "no \u001b[2J"}`))
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1" // a port that was free a moment ago may be somebody's by now
	r := setup(t).plain("--url", url, "resume", "s", "-o", "json").ends(1)
	m := r.manifest()
	require.Equal(t, string(exit.CodeUnreachable), m.Error.Code)
	require.Equal(t, "s", m.SessionID)
	require.Contains(t, r.stderr, "connection refused")
	require.Contains(t, r.stderr, "is there a server at "+url)
}

// TestServerWorksByItself: over HTTP a command only watches; what is started goes on
// without it.
func TestServerWorksByItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	gate := b.file("gate")
	started := b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "[{call: gate, with: {service: "+gate+"}}, {say: through}]").ends(0)
	require.Contains(t, started.stdout, "Session s has not begun yet, or is in its first step: nothing was written since its start.")
	require.Contains(t, started.stdout, "Wait for it: adjourn --url "+b.url+" resume s")
	b.run("resume", "s", "--wait", "100ms").ends(124)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.Equal(t, "through\n", b.run("resume", "s").stdoutOrShow(b))
	require.NoFileExists(t, filepath.Join(filepath.Dir(b.data), "pause.json"))
}

// stdoutOrShow is what a session said in the end, whether this command saw it end
// or came too late.
func (r result) stdoutOrShow(b *bench) string {
	r.t.Helper()
	if r.code == 5 { // it had ended before the command came
		require.Contains(r.t, b.run("show", "s").ends(0).stdout, "through")
		return "through\n"
	}
	return r.ends(0).stdout
}

// TestServerHasOtherAgents: what there is, the server says.
func TestServerHasOtherAgents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	b.registry = nil // commands must do without
	b.run("run", "--agent", "toy", "--session", "s", "[{call: deploy, with: {service: a}}, {say: ok}]").ends(10)
	r := b.run("run", "--agent", "nobody", "-o", "json", "hi").ends(3)
	require.Equal(t, string(runtime.CodeUnknownAgent), r.manifest().Error.Code)
	require.Contains(t, b.run("run", "hi").ends(2).stderr, "say which one; there are hello, toy")
	b.env["ADJOURN_AGENT"] = "hello"
	require.Equal(t, "hello\n", b.run("run", "hi").ends(0).stdout)
	require.Empty(t, strings.Split(b.run("__complete", "run", "--agent", "").stdout, ":")[0])
	require.Contains(t, b.run("__complete", "show", "").stdout, "s\tsuspended, toy")
	require.Equal(t, "ok\n", b.run("resume", "s", "--approve", "w2-1").ends(0).stdout)
}

// TestServerRefusesEditedArguments: only the server knows what a tool takes, so
// that it says so to the person who edits.
func TestServerRefusesEditedArguments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	log := b.file("log")
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
	p.Sees(prompt).Types("?\n").Sees("only the server knows").Sees(prompt)
	p.Types("e {\"servce\": 1}\n").Sees(prompt).Types("y\n").Sees("servce").Sees(`"service": "web"`).Sees(prompt).Types("y\n")
	require.Equal(t, 0, p.Leaves(), p.All())
	require.Equal(t, "web\n", read(t, log))
}

func TestSomebodyElsesSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	m := b.run("show", "nobody", "-o", "json").ends(3).manifest()
	require.Equal(t, session.OutcomeError, m.Outcome)
	require.Equal(t, string(runtime.CodeSessionNotFound), m.Error.Code)
	for _, args := range [][]string{{"resume", "nobody"}, {"resume", "nobody", "--approve-all"}, {"submit", "nobody", "w1-1", "--reply", "x"}} {
		r := b.run(args...).ends(3)
		require.Contains(t, r.stderr, b.words()+" sessions")
	}
	require.Contains(t, b.run("sessions").ends(0).stderr, "No sessions in "+b.url)
}

// TestServerSpeaksHTTP: there is a server; it is the address that is wrong.
func TestServerSpeaksHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	b.env["ADJOURN_URL"] = strings.Replace(b.url, "http:", "https:", 1)
	r := b.plain("sessions").ends(1)
	require.Contains(t, r.stderr, "the server speaks http; write "+b.url)
	require.NotContains(t, r.stderr, "is there a server")
}

// TestAnswerNobodyTook: somebody decides at a prompt, and the server is gone.
func TestAnswerNobodyTook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone bool
		says string
	}{
		"gone":  {true, "your answer was not sent, the session still waits"},
		"drops": {false, "nobody knows whether your answer arrived"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.serve()
			target, err := url.Parse(b.url)
			require.NoError(t, err)
			through := httputil.NewSingleHostReverseProxy(target)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/submit") {
					panic(http.ErrAbortHandler)
				}
				through.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			front.Config.SetKeepAlivesEnabled(false) // a connection that is left could be taken for a server that is there
			here := b.url
			b.url = front.URL
			p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(b.file("log"), "web"))
			p.Sees(prompt)
			if c.gone {
				front.CloseClientConnections()
				front.Close()
			}
			require.Equal(t, 1, p.Types("y\n").Leaves(), p.All())
			require.Contains(t, p.All(), c.says)
			require.Contains(t, p.All(), "is there a server at")
			b.url = here
			require.Contains(t, b.run("inbox").ends(0).stdout, "approval of deploy")
		})
	}
}

// TestServerComesBack: a command that waits for a session outlasts a server that
// is away for a while.
func TestServerComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	away := true
	target, err := url.Parse(b.url)
	require.NoError(t, err)
	through := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away && strings.HasSuffix(r.URL.Path, "/entries") {
			away = false
			w.Header().Set("Retry-After", "3600") // longer than a client waits by itself
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	gate := b.file("gate")
	time.AfterFunc(300*time.Millisecond, func() { _ = os.WriteFile(gate, nil, 0o600) })
	r := b.plain("--url", front.URL, "run", "--agent", "toy", "[{call: gate, with: {service: "+gate+"}}, {say: through}]").ends(0)
	require.Equal(t, "through\n", r.stdout)
	require.False(t, away)
}
