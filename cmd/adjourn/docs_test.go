//go:build linux

package main_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/terminaltest"
)

// reader is a person who pastes the commands of a page in a folder of their own.
type reader struct {
	t       *testing.T
	page    string
	dir     string
	replace *strings.Replacer
	env     []string
}

func newReader(t *testing.T, page string) *reader {
	t.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the commands of %s need %s: %v", page, program, err)
		}
	}
	text, err := os.ReadFile(filepath.Join("../..", page))
	require.NoError(t, err)
	r := &reader{t: t, page: string(text), dir: t.TempDir(), replace: strings.NewReplacer()}
	require.NoError(t, os.Mkdir(filepath.Join(r.dir, "bin"), 0o700))
	require.NoError(t, os.Link(binary(t), filepath.Join(r.dir, "bin/adjourn")))
	return r
}

// block returns the n-th block of commands of a section, from 1, without what
// builds the program, which is done.
func (r *reader) block(section string, n int) string {
	r.t.Helper()
	_, text, found := strings.Cut(r.page, "\n## "+section+"\n")
	require.True(r.t, found, "the page has no section %q", section)
	text, _, _ = strings.Cut(text, "\n## ")
	blocks := strings.Split(text, "```sh\n")
	require.Greater(r.t, len(blocks), n, "section %q has no block %d", section, n)
	commands, _, closed := strings.Cut(blocks[n], "```\n")
	require.True(r.t, closed)
	return strings.ReplaceAll(commands, "make build\n", "")
}

// line is what is typed, once something is seen.
type line struct{ seen, typed string }

// paste runs a block at a terminal, command by command, and returns what it
// printed. A command may pause a session (exit 10, of which go run makes 1).
func (r *reader) paste(section string, n int, lines ...line) string {
	r.t.Helper()
	var script strings.Builder
	for command := range strings.Lines(r.replace.Replace(r.block(section, n))) {
		command = strings.TrimSuffix(command, "\n")
		paused := 10
		if strings.HasPrefix(command, "go run ") {
			paused = 1
		}
		fmt.Fprintf(&script, "%s\ncode=$?; [ $code = 0 ] || [ $code = %d ] || { echo %q exits $code; exit 1; }\n", command, paused, command)
	}
	script.WriteString("exit 0\n")
	env := append([]string{"TERM=xterm", "NO_COLOR=1"}, r.env...)
	for _, name := range []string{"PATH", "HOME", "GOCACHE", "GOPATH", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "XDG_CONFIG_HOME"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	person := terminaltest.Sit(r.t, terminaltest.Program{
		Args: []string{"bash", "-c", script.String()},
		Dir:  r.dir, Env: env,
		Rows: 40, Columns: 120,
	})
	for _, line := range lines {
		person.Sees(line.seen).Types(line.typed)
	}
	require.Zero(r.t, person.Leaves(), "%s\n%s", r.block(section, n), person.All())
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x1b[2K", "").Replace(person.All())
}

// What is asked at the terminal, and the key that leaves it unanswered.
const (
	whether = "[?] help: "
	which   = "Number (an empty line leaves it for later): "
	leave   = "\x03"
)

func TestDocs_a_first_session(t *testing.T) {
	t.Parallel()
	r := newReader(t, "docs/cli.md")
	const section = "A first session"
	require.Contains(t, r.paste(section, 1, line{whether, leave}), "Paused. Session photos waits for an approval. Nothing is running.")
	photos := func() []string {
		found, err := filepath.Glob(filepath.Join(r.dir, "photos/*.jpg"))
		require.NoError(t, err)
		return found
	}
	require.Len(t, photos(), 2)
	require.Contains(t, r.paste(section, 2), "delete_file")
	require.Len(t, photos(), 1)
}

func TestDocs_try_everything_without_a_model(t *testing.T) {
	t.Parallel()
	out := newReader(t, "docs/cli.md").paste("Try everything without a model", 1)
	require.Contains(t, out, "Session try waits for an approval")
	require.Regexp(t, `(?m)^done$`, out)
}

func TestReadme_one_program(t *testing.T) {
	t.Parallel()
	r := newReader(t, "README.md")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, name := range []string{"go.mod", "go.sum", "internal", "pkg", "examples"} {
		require.NoError(t, os.Symlink(filepath.Join(root, name), filepath.Join(r.dir, name)))
	}
	require.Regexp(t, `(?m)^A-17 is refunded\.$`, r.paste("One program", 1, line{whether, leave}))
}

func TestReadme_in_your_hands(t *testing.T) {
	t.Parallel()
	out := newReader(t, "README.md").paste("In your hands", 1)
	for _, said := range []string{"interrupted", "call      c2-1 add_note", "Session copy is a fork of long.", "in a copy", "in place", "Session long at entry 3: completed", "add /notes", "resume   completed"} {
		require.Contains(t, strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(said), " "))
	}
}

func TestDocs_HTTP_on_your_machine(t *testing.T) {
	t.Parallel()
	r := newReader(t, "docs/http.md")
	const commands = "Commands over HTTP"
	require.Equal(t, "bin/adjourn dev --lab\n", r.block("Start a server", 1))
	server := exec.CommandContext(t.Context(), filepath.Join(r.dir, "bin/adjourn"), "dev", "--lab", "--addr", "127.0.0.1:0")
	server.Dir = r.dir
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // not to outlive a test that is killed
	printed, output, err := os.Pipe()
	require.NoError(t, err)
	server.Stdout, server.Stderr = output, output
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait(); _ = printed.Close() })
	require.NoError(t, output.Close())
	url := ""
	lines := bufio.NewScanner(printed)
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text())
	}
	require.NotEmpty(t, url, "dev does not say where it is")
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	r.replace = strings.NewReplacer("http://127.0.0.1:8420", url)

	out := r.paste("Call it with curl", 1)
	require.NotContains(t, out, `"code"`, "a request was refused")
	require.Contains(t, out, `"status":"suspended"`)
	require.Contains(t, out, `"status":"completed"`)
	require.Contains(t, out, "deployed")
	require.Contains(t, r.paste(commands, 1, line{which, leave}), "Session there waits for an answer to a question")
	token, err := os.ReadFile(filepath.Join(r.dir, ".adjourn/token"))
	require.NoError(t, err)
	r.env = []string{"ADJOURN_URL=" + url, "ADJOURN_TOKEN=" + strings.TrimSpace(string(token))} // of the same terminal
	out = r.paste(commands, 2, line{which, "1\n"}, line{whether, "y\n"})
	require.Regexp(t, `(?m)^done$`, out)
}
