//go:build linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/httpapi"
)

// victim is a folder in which somebody runs a server.
type victim struct {
	t         *testing.T
	base, dir string
	url, key  string // of a stranger, whom the owner gave a key
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	v := &victim{t: t, base: base, dir: filepath.Join(base, "project")}
	for name, text := range map[string]string{
		"project/photos/a.jpg": "same", "project/photos/b.jpg": "same", "other/a.jpg": "same", "other/b.jpg": "same", "other/notes": "mine\n",
	} {
		path := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return v
}

// run runs the real program in the folder, without a terminal.
func (v *victim) run(code int, args ...string) string {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), binary(v.t), args...)
	cmd.Dir, cmd.Env = v.dir, v.env()
	out, _ := cmd.CombinedOutput() // the code says it
	require.Equal(v.t, code, cmd.ProcessState.ExitCode(), "%s\n%s", args, out)
	return string(out)
}

func (v *victim) env() []string {
	return append(os.Environ(), "ADJOURN_DATA=", "ADJOURN_URL=", "ADJOURN_MODEL=", "ADJOURN_AGENT=", "ADJOURN_LAB=", "ADJOURN_LAB_FOLDER=", "ADJOURN_LOG=error")
}

// serve starts dev, and gives a stranger a key. It returns what ends the server.
func (v *victim) serve(flags ...string) (stop func()) {
	v.t.Helper()
	server := exec.CommandContext(v.t.Context(), binary(v.t), append([]string{"dev", "--addr", "127.0.0.1:0", "-o", "json"}, flags...)...)
	server.Dir, server.Env = v.dir, v.env()
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := server.StdoutPipe()
	require.NoError(v.t, err)
	require.NoError(v.t, server.Start())
	stop = func() { _ = server.Process.Signal(os.Interrupt); _ = server.Wait() }
	v.t.Cleanup(func() { _ = server.Process.Kill() })
	var said struct {
		URL, KeyFile string
	}
	require.NoError(v.t, json.NewDecoder(out).Decode(&said))
	v.url = said.URL
	v.key, err = httpapi.NewAPIKey(said.KeyFile, "stranger", "")
	require.NoError(v.t, err)
	return stop
}

// ask sends a request as the stranger.
func (v *victim) ask(path string, body any) (status int, answer string) {
	v.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(v.t, err)
	method, reader := http.MethodPost, io.Reader(bytes.NewReader(raw))
	if body == nil {
		method, reader = http.MethodGet, nil
	}
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, reader)
	require.NoError(v.t, err)
	req.Header.Set("Authorization", "Bearer "+v.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "wait=20")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(v.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(v.t, err)
	require.NoError(v.t, resp.Body.Close())
	return resp.StatusCode, string(text)
}

// tree is every file below the base that is not the data or the lab's, with its text.
func (v *victim) tree() map[string]string {
	v.t.Helper()
	files := map[string]string{}
	require.NoError(v.t, filepath.WalkDir(v.base, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".adjourn" || d.Name() == "adjourn-lab") {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			files[path] = string(text)
			return err
		}
		return nil
	}))
	return files
}

// targets are the ways to a file that is not the lab's.
func (v *victim) targets() []string {
	lab := filepath.Join(v.dir, "adjourn-lab")
	require.NoError(v.t, os.MkdirAll(lab, 0o700))
	keys := filepath.Join(v.dir, ".adjourn", "api-keys")
	for name, to := range map[string]string{"link": keys, "data": "../.adjourn", "away": filepath.Join(v.base, "other", "notes")} {
		require.NoError(v.t, os.Symlink(to, filepath.Join(lab, name)))
	}
	require.NoError(v.t, os.Link(keys, filepath.Join(lab, "hard")))
	return []string{
		keys, "../.adjourn/api-keys", "x/../../.adjourn/api-keys", lab + "/../.adjourn/api-keys", "link", "data/api-keys", "hard", "away",
		"../photos/a.jpg", filepath.Join(v.base, "other", "notes"), "../.bashrc", "../.ADJOURN/api-keys",
	}
}

// attack is a script that asks lab to write to each target by each of its tools.
func attack(targets []string) (script string, calls int) {
	var items []string
	for _, path := range targets {
		for _, call := range []string{
			"append_line, with: {path: %q, text: stranger default 00}", "append_once, with: {path: %q, text: stranger default 00}",
			"refund, with: {order: A, amount: 1, log: %q}",
		} {
			items = append(items, "{call: "+fmt.Sprintf(call, path)+"}")
		}
	}
	return "[" + strings.Join(items, ", ") + ", {say: done}]", len(items)
}

func TestLab_over_HTTP(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	stop := v.serve("--lab")
	script, calls := attack(v.targets())
	keys, before := filepath.Join(v.dir, ".adjourn", "api-keys"), v.tree()
	mine, err := os.ReadFile(keys)
	require.NoError(t, err)

	status, answer := v.ask("/sessions", map[string]any{"sessionId": "attack", "agent": "lab", "input": script})
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, `"status":"completed"`)
	got, err := os.ReadFile(keys)
	require.NoError(t, err)
	require.Equal(t, string(mine), string(got), "nobody made himself a key")
	require.Equal(t, before, v.tree())
	// Each refusal is in the journal, which the owner reads.
	_, messages := v.ask("/sessions/attack/messages?limit=200", nil)
	require.Equal(t, calls, strings.Count(messages, `"status":"error"`), messages)
	require.Contains(t, v.run(0, "show", "attack"), "outside of the folder")

	status, answer = v.ask("/sessions", map[string]any{"sessionId": "own", "agent": "lab", "input": "[{call: append_line, with: {path: own.txt, text: a}}, {say: done}]"})
	require.Equal(t, http.StatusOK, status, answer)
	require.FileExists(t, filepath.Join(v.dir, "adjourn-lab", "own.txt"))

	for i, folder := range []string{filepath.Join(v.base, "other"), filepath.Join(v.dir, "photos"), "../photos", ".adjourn", filepath.Join(v.dir, ".adjourn"), "data", "/"} {
		status, answer := v.ask("/sessions", map[string]any{"sessionId": fmt.Sprintf("janitor-%d", i), "agent": "janitor", "input": "clean \"" + folder + "\""})
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, answer, "I could not list the folder", folder)
		require.NotContains(t, answer, "b.jpg")
	}
	require.Equal(t, before, v.tree())
	stop()
}

func TestLab_is_not_offered(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.run(10, "run", "--agent", "lab", "--session", "mine", "[{call: deploy, with: {service: web, log: log.txt}}, {say: done}]")
	stop := v.serve()
	for _, agent := range []string{"lab", "janitor"} {
		status, answer := v.ask("/sessions", map[string]any{"agent": agent, "input": "[{say: hello}]"})
		require.Equal(t, http.StatusForbidden, status)
		require.Contains(t, answer, `"code":"agent_not_offered"`)
		require.Contains(t, answer, "adjourn dev --lab")
	}
	// One that is there keeps its answer, and goes on where the agent is offered.
	status, answer := v.ask("/sessions/mine/resume", map[string]any{"decisions": map[string]any{"approve": []string{"w2-1"}}})
	require.Less(t, status, 300, answer)
	require.NoFileExists(t, filepath.Join(v.dir, "adjourn-lab", "log.txt"))
	stop()
	v.run(0, "work")
	require.Contains(t, v.run(0, "show", "mine"), "completed")
	require.FileExists(t, filepath.Join(v.dir, "adjourn-lab", "log.txt"))
}

func TestLab_at_the_terminal(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.run(0, "run", "--agent", "lab", "[{say: hello}]")
	keys := filepath.Join(v.dir, ".adjourn", "api-keys")
	require.NoError(t, os.WriteFile(keys, []byte("mine\n"), 0o600))
	script, calls := attack(v.targets())
	before := v.tree()
	v.run(0, "run", "--agent", "lab", "--session", "attack", script)
	require.Equal(t, calls, strings.Count(v.run(0, "show", "-o", "json", "attack"), `"status":"error"`)+strings.Count(v.run(0, "show", "-o", "json", "attack"), `"status": "error"`))
	got, err := os.ReadFile(keys)
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(got))

	for _, folder := range []string{filepath.Join(v.base, "other"), "../other", ".adjourn", "/"} {
		require.Contains(t, v.run(10, "run", "--agent", "janitor", folder), "I could not list the folder")
	}
	require.Equal(t, before, v.tree())
	require.Contains(t, v.run(10, "run", "--agent", "janitor", "./photos"), "b.jpg", "its own work is as ever")
	require.Contains(t, v.run(0, "agents"), "a server offers it only with --lab")

	// A symlink of the lab's name, as a clone may bring it, is no folder of the lab.
	require.NoError(t, os.RemoveAll(filepath.Join(v.dir, "adjourn-lab")))
	require.NoError(t, os.Symlink(filepath.Join(v.base, "other"), filepath.Join(v.dir, "adjourn-lab")))
	v.run(0, "run", "--agent", "lab", "[{call: append_line, with: {path: notes, text: x}}, {say: done}]")
	require.Equal(t, before, v.tree())
}
