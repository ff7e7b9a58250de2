package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// server is the command dev in a process of its own.
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	said string // on stdout, up to the end of what it prints at its start
	URL  string
	// TokenFile and KeyFile as it printed them.
	TokenFile, KeyFile, Key string

	mu  sync.Mutex
	log bytes.Buffer
}

// Write keeps what is printed on stderr.
func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *server) stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// startDev starts the server of a program, with its output as JSON.
func startDev(t *testing.T, program string, env []string, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: exec.CommandContext(t.Context(), program, append([]string{"dev", "--addr", "127.0.0.1:0", "-o", "json"}, args...)...)}
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), env...), s
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	require.NoError(t, json.NewDecoder(out).Decode(s), s.stderr())
	return s
}

// startWords starts the server and returns the lines that it says to paste.
func startWords(t *testing.T, program, dir string) (s *server, pasted []string) {
	t.Helper()
	s = &server{t: t, cmd: exec.CommandContext(t.Context(), program, "dev", "--lab", "--addr", "127.0.0.1:0")}
	s.cmd.Dir, s.cmd.Stderr = dir, s
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.said += lines.Text() + "\n"
		if line, is := strings.CutPrefix(lines.Text(), "  "); is {
			pasted = append(pasted, line)
		}
		if strings.Contains(lines.Text(), " show ") {
			return s, pasted
		}
	}
	require.FailNow(t, "the server ended", s.said+s.stderr())
	return nil, nil
}

// says waits until the server has said something on stderr.
func (s *server) says(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return strings.Contains(s.stderr(), text) }, time.Minute, 5*time.Millisecond, "waiting for %q", text)
}

// leave asks for something and goes away as soon as the server has been asked.
func (s *server) leave(path, token string) {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	asked := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { leave() }})
	req, err := http.NewRequestWithContext(asked, http.MethodGet, s.URL+path, nil)
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.ErrorIs(s.t, err, context.Canceled)
}

// interrupt does what Ctrl-C does, and returns the exit code.
func (s *server) interrupt() int {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(os.Interrupt))
	return s.ended()
}

func (s *server) ended() int {
	s.t.Helper()
	_ = s.cmd.Wait() // its state says all
	return s.cmd.ProcessState.ExitCode()
}

// asCurl is what curl does, as far as the printed lines need it, so that they can
// be pasted where there is none.
func asCurl(args []string) error {
	method, url, body := http.MethodGet, "", ""
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-sS":
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		case "-d":
			i++
			method, body = http.MethodPost, args[i]
		default:
			url = args[i]
		}
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body)) //nolint:noctx // it lives as long as its process
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// TestDev pastes what the server says to paste, line by line, into two shells.
func TestDev(t *testing.T) {
	t.Parallel()
	program := build(t)
	dir := filepath.Join(t.TempDir(), "it's here")
	require.NoError(t, os.Mkdir(dir, 0o755))
	s, pasted := startWords(t, program, dir)
	require.Contains(t, s.said, "API key, made just now:  adj_")

	tools := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(tools, "curl")))
	var curls, commands []string
	for _, line := range pasted {
		if strings.HasPrefix(line, "'"+program) || strings.HasPrefix(line, program) {
			commands = append(commands, line)
			continue
		}
		curls = append(curls, line)
	}
	require.Len(t, curls, 7)
	second := sh(t, t.TempDir(), "PATH='"+tools+"':\"$PATH\" "+asProgram+"=1; export PATH "+asProgram+"\n"+strings.Join(curls, "\n")).ends(0)
	answers := strings.Split(strings.TrimSpace(second.stdout), "\n")
	require.Len(t, answers, 4, second.stdout+second.stderr)
	require.Contains(t, answers[0], `"outcome":"paused"`)
	require.Contains(t, answers[1], `"tool":"deploy"`)
	require.Contains(t, answers[2], `"outcome":"completed"`)
	require.Contains(t, answers[3], `"deployed"`)

	require.Len(t, commands, 3)
	require.Contains(t, sh(t, t.TempDir(), commands[0]).ends(10).stdout, "waits for an approval")
	require.Contains(t, sh(t, t.TempDir(), commands[1]).ends(0).stdout, "approval of deploy")
	require.Contains(t, sh(t, t.TempDir(), commands[2]).ends(0).stdout, "completed")

	require.Equal(t, 0, s.interrupt(), s.stderr())
	for _, text := range []string{"POST /sessions  200", "hello  step 1: paused, nothing runs", "hello  completed after 2 steps", "GET /waits  200", "Stopping."} {
		require.Contains(t, s.stderr(), text)
	}
	key := strings.TrimSpace(read(t, filepath.Join(dir, ".adjourn", "token")))
	require.Contains(t, s.said, key)
	require.NotContains(t, s.stderr(), key)
	require.NotContains(t, strings.Join(pasted, "\n"), key, "what is pasted names the file")

	again, _ := startWords(t, program, dir)
	require.NotContains(t, again.said, key, "it is printed once")
	require.Contains(t, again.said, "--show-key")
	require.NoError(t, again.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, again.ended())
}

func TestDevOfAUsersProgram(t *testing.T) {
	t.Parallel()
	b := setup(t)
	program := b.install()
	env := []string{asProgram + "=1", "ADJOURN_DATA=" + b.data}
	s := startDev(t, program, env, "--show-key", "-q")
	require.Equal(t, b.data+".token", s.TokenFile)
	require.Equal(t, b.data+".api-keys", s.KeyFile)
	require.Equal(t, strings.TrimSpace(read(t, s.TokenFile)), s.Key)
	b.url, b.env["ADJOURN_TOKEN"] = s.URL, s.Key
	require.Equal(t, "hello\n", b.run("run", "--agent", "hello", "hi").ends(0).stdout)
	require.Contains(t, b.run("sessions").ends(0).stdout, "hello")

	// Beside it, the data file is anybody's as ever.
	local := b.plain("--data", b.data, "run", "--agent", "hello", "hi").ends(0)
	require.Equal(t, "hello\n", local.stdout)
	require.Equal(t, 0, s.interrupt())
	require.Empty(t, s.stderr(), "quiet is quiet")
}

// TestDevStopsInTheMiddle has Ctrl-C come while a step is under way; the session
// goes on where the next server finds it.
func TestDevStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	program, gate := b.install(), b.file("gate")
	env := []string{asProgram + "=1", "ADJOURN_DATA=" + b.data}
	s := startDev(t, program, env, "--concurrency", "3")
	require.Empty(t, s.Key, "a key is not printed unless asked for")
	b.url, b.env["ADJOURN_TOKEN"] = s.URL, strings.TrimSpace(read(t, s.TokenFile))
	b.run("run", "--agent", "toy", "--session", "s", "--wait", "50ms", "[{call: gate, with: {service: "+gate+"}}, {say: through}]").ends(124)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/%1b%5b2J%e2%80%ae", nil) // somebody would paint over the log
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	s.leave("/sessions/s/entries?after=9&wait=20", b.env["ADJOURN_TOKEN"])
	s.says("GET /sessions/s/entries  the caller left")
	require.Equal(t, 0, s.interrupt(), s.stderr())
	require.Contains(t, s.stderr(), `GET /\x1b[2J\u202e  401`)
	require.Contains(t, s.stderr(), "Stopped.\n1 session has work left; what goes on with it: ")
	require.Contains(t, s.stderr(), " dev --addr 127.0.0.1:0 --concurrency 3\n", "with the flags of this server")
	require.NotContains(t, s.stderr(), "what for")
	require.Contains(t, b.run("show", "s").ends(1).stderr, "is there a server at")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	s = startDev(t, program, env)
	b.url = s.URL
	r := b.run("resume", "s", "--wait", "30s")
	require.Contains(t, []int{0, 5}, r.code, r.stderr) // 5: it had ended before the command came
	require.Contains(t, b.run("show", "s").ends(0).stdout, "through")
	for _, id := range []string{"one", "two"} {
		b.run("run", "--agent", "toy", "--session", id, "[{need: a?}]").ends(10)
	}
	require.Equal(t, 0, s.interrupt())
	_, last, found := strings.Cut(s.stderr(), "Stopped.\n2 sessions wait; what for: ")
	require.True(t, found, s.stderr())
	require.NotContains(t, s.stderr(), "work left")
	inbox := b.shell(last).ends(0).stdout
	require.Contains(t, inbox, "one", "what it says can be pasted")
	require.Contains(t, inbox, "two")
}

func TestDevRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for addr, c := range map[string]struct {
		code int
		says string
	}{
		"0.0.0.0:0": {2, "--allow-remote"},
		":8420":     {2, "--allow-remote"},
		"8420":      {2, "host:port"},
	} {
		r := b.run("dev", "--addr", addr).ends(c.code)
		require.Contains(t, r.stderr, c.says)
		require.Empty(t, r.stdout)
	}
	b.run("dev", "--concurrency", "0").ends(2)
	b.run("dev", "now").ends(2)

	other := setup(t)
	other.serve()
	r := b.run("dev", "--addr", strings.TrimPrefix(other.url, "http://")).ends(1)
	require.Contains(t, r.stderr, "in use")
	require.Contains(t, r.stderr, "127.0.0.1:0")
	require.NoFileExists(t, b.data, "what is refused makes nothing")
	require.NoDirExists(t, filepath.Dir(b.data))

	b.start("s", "[{say: ok}]", 0)
	require.NoError(t, os.WriteFile(b.data+".api-keys", []byte("x\n"), 0o600))
	r = b.run("dev", "--addr", "127.0.0.1:0").ends(1)
	require.Contains(t, r.stderr, "api-keys")
}

// TestDevSecondInterrupt: a step that does not let go is not waited for twice.
func TestDevSecondInterrupt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := startDev(t, b.install(), []string{asProgram + "=1", "ADJOURN_DATA=" + b.data})
	b.url, b.env["ADJOURN_TOKEN"] = s.URL, strings.TrimSpace(read(t, s.TokenFile))
	begun := filepath.Join(t.TempDir(), "begun")
	b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "[{call: stubborn, with: {service: "+begun+"}}]").ends(0)
	require.Eventually(t, func() bool { return exists(begun) }, time.Minute, 5*time.Millisecond)
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	s.says("Ctrl-C again")
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	s.ended()
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.True(t, status.Signaled(), fmt.Sprint(s.cmd.ProcessState))
}
