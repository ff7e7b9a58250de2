package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// person sits at a terminal in which the program runs.
type person struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	seen string // what was printed and has not been looked at
	all  string
}

// sit runs the program on a terminal.
func (b *bench) sit(env []string, args ...string) *person {
	b.t.Helper()
	self, err := os.Executable()
	require.NoError(b.t, err)
	cmd := exec.CommandContext(b.t.Context(), self, append(b.where(), args...)...)
	cmd.Env = b.environ(append([]string{"TERM=xterm", "EDITOR=", "VISUAL=", "NO_COLOR="}, env...)...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = tty.Close() })
	require.NoError(b.t, tty.SetReadDeadline(time.Now().Add(30*time.Second)))
	return &person{t: b.t, cmd: cmd, tty: tty}
}

// sees waits until something is printed.
func (p *person) sees(text string) *person {
	p.t.Helper()
	buffer := make([]byte, 4096)
	for {
		if i := strings.Index(p.seen, text); i >= 0 {
			p.seen = p.seen[i+len(text):]
			return p
		}
		n, err := p.tty.Read(buffer)
		p.seen += string(buffer[:n])
		p.all += string(buffer[:n])
		require.NoError(p.t, err, "waiting for %q, saw: %s", text, p.all)
	}
}

func (p *person) types(text string) *person {
	p.t.Helper()
	_, err := p.tty.WriteString(text)
	require.NoError(p.t, err)
	return p
}

// leaves waits until the program has ended, and returns its exit code.
func (p *person) leaves() int {
	p.t.Helper()
	buffer := make([]byte, 4096)
	for {
		n, err := p.tty.Read(buffer)
		p.all += string(buffer[:n])
		if err != nil {
			require.NotErrorIs(p.t, err, os.ErrDeadlineExceeded, p.all)
			break // a terminal without a program says EIO
		}
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) {
		require.NoError(p.t, err)
	}
	return p.cmd.ProcessState.ExitCode()
}

const prompt = "[?] help: "

func TestApprovalOnATerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typed []string
		code  int
		ran   string
	}{
		"yes":              {[]string{"y\n"}, 0, "web\n"},
		"no":               {[]string{"n not on a Friday\n"}, 0, ""},
		"just enter is no": {[]string{"\n"}, 0, ""},
		"nonsense":         {[]string{"sure\n", "yes\n"}, 0, "web\n"},
		"help first":       {[]string{"?\n", "y\n"}, 0, "web\n"},
		"edit in line":     {[]string{`e {"service": "api", "log": "LOG"}` + "\n", "y\n"}, 0, "api\n"},
		"edit badly":       {[]string{"e {\n", "y\n"}, 0, "web\n"},
		"edit, then no":    {[]string{`e {"service": "api", "log": "LOG"}` + "\n", "n\n"}, 0, ""},
		"Ctrl-C":           {[]string{"\x03"}, 10, ""},
		"Ctrl-D":           {[]string{"\x04"}, 10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, b *bench) {
				log := b.file("log")
				p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
				p.sees("I am about to deploy.").sees(`"service": "web"`)
				for _, typed := range c.typed {
					p.sees(prompt)
					require.Empty(t, read(t, log), "nothing runs before the answer")
					p.types(strings.ReplaceAll(typed, "LOG", log))
				}
				require.Equal(t, c.code, p.leaves(), p.all)
				require.Equal(t, c.ran, read(t, log))
				if c.code == 10 {
					require.Contains(t, p.all, "--approve c2-1")
					require.Equal(t, "all done\n", b.run("resume", "s", "--approve-all").ends(0).stdout, "it is still open")
				}
			})
		})
	}
}

func TestEditorOnATerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := b.file("log")
	editor := b.file("editor.sh")
	require.NoError(t, os.WriteFile(editor, []byte("#!/bin/sh\nsed -i.bak s/web/api/ \"$2\"\n"), 0o700))
	p := b.sit([]string{"EDITOR='" + editor + "' --wait"}, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
	p.sees(prompt).types("e\n").sees(`"service": "api"`).sees(prompt).types("y\n")
	require.Equal(t, 0, p.leaves(), p.all)
	require.Equal(t, "api\n", read(t, log))
	require.Contains(t, b.run("show", "s").ends(0).stdout, "approved with other arguments")
}

func TestSeveralOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "a", "b", "c"))
		p.sees(`"service": "a"`).sees(prompt).types("y\n").sees(`"service": "b"`).sees(prompt).types("n\n").sees(prompt).types("\x03")
		require.Equal(t, 10, p.leaves(), p.all)
		p = b.sit(nil, "resume", "s")
		p.sees(`"service": "c"`).sees(prompt).types("y\n")
		require.Equal(t, 0, p.leaves(), p.all)
		require.ElementsMatch(t, []string{"a", "c"}, strings.Fields(read(t, log)), "answers given before the interrupt count")
	})
}

func TestQuestionsOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: name}, {call: pick}, {call: many}, {need: anything else?}]")
		p.sees("What is your name?").sees("Your answer: ").types("Ada\n")
		p.sees("Which color?").sees("Number").types("3\n").sees("no choice 3").sees("Number").types("2\n")
		p.sees("Which colors?").sees("Numbers").types("1, blue\n")
		p.sees("anything else?").sees("Your answer").types("[{say: bye}]\n").sees("bye")
		require.Equal(t, 0, p.leaves(), p.all)
		shown := b.run("show", "s", "--full").ends(0).stdout
		for _, text := range []string{`success: "Ada"`, `success: ["blue"]`, `success: ["red","blue"]`} {
			require.Contains(t, shown, text)
		}
	})
}

func TestVerdictOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: pay}, {say: ok}]")
		p.sees("Nobody knows whether").sees("Did it happen?").types("perhaps\n").sees("Did it happen?").types("y\n").sees("ok")
		require.Equal(t, 0, p.leaves(), p.all)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "verdict happened by")

		p = b.sit(nil, "run", "--agent", "toy", "--session", "t", "[{call: pay}, {say: ok}]")
		p.sees("Did it happen?").types("\n")
		require.Equal(t, 10, p.leaves(), p.all)
		p = b.sit(nil, "resume", "t")
		p.sees("Did it happen?").types("no\n")
		require.Equal(t, 0, p.leaves(), p.all)
	})
}

func TestEditWithoutAnEditor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := b.file("log")
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
	p.sees(prompt).types("e\n").sees("JSON on one line: ").types("\n").sees("stay as they are").sees(prompt)
	p.types("e\n").sees("JSON on one line: ").types(`{"service": "api", "log": "` + log + `"}` + "\n").sees(prompt).types("y\n")
	require.Equal(t, 0, p.leaves(), p.all)
	require.Equal(t, "api\n", read(t, log))
}

func TestEditorThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.sit([]string{"VISUAL=false"}, "run", "--agent", "toy", "--session", "s", deploys(b.file("log"), "web"))
	p.sees(prompt).types("e\n").sees("stay as they are: false").sees(prompt).types("\x03")
	require.Equal(t, 10, p.leaves(), p.all)
}

func TestClientToolOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: locate}, {say: ok}]")
		p.sees("which runs on your side").sees("submit s --call w2-1 --result")
		require.Equal(t, 10, p.leaves(), p.all)
	})
}

func TestNobodyIsAsked(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no input": {"--no-input"},
		"json":     {"--output", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.sit(nil, append([]string{"run", "--agent", "toy", "[{call: deploy, with: {service: a}}]"}, args...)...)
			require.Equal(t, 10, p.leaves(), p.all)
			require.NotContains(t, p.all, prompt)
		})
	}
}

func TestSomebodyElseWasFirst(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
		p.sees(prompt)
		b.run("resume", "s", "--reject-all").ends(0)
		p.types("y\n")
		require.Equal(t, 5, p.leaves(), p.all)
		require.Contains(t, p.all, "answered before")
		require.Empty(t, read(t, log), "the first answer counts")
	})
}

// TestYesStandsAlone: what begins with a yes and goes on is not one.
func TestYesStandsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := b.file("log")
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
	p.sees(prompt).types("y no wait do not\n").sees("A yes stands alone").sees(prompt).types("e {\"servce\": 1}\n")
	p.sees("the arguments stay as they are").sees(prompt).types("\x03")
	require.Equal(t, 10, p.leaves(), p.all)
	require.Empty(t, read(t, log))
}

// TestTypedTooEarly has a person type on before there is anything to answer.
func TestTypedTooEarly(t *testing.T) {
	t.Parallel()
	t.Run("while the agent works", func(t *testing.T) {
		t.Parallel()
		both(t, func(t *testing.T, b *bench) {
			log, gate := b.file("log"), b.file("gate")
			p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: gate, with: {service: "+gate+"}}, {call: deploy, with: {service: prod, log: "+log+"}}]")
			p.sees("working …").types("y\ny").sees("y\r\ny") // the terminal echoes it, so it is in the queue
			require.NoError(t, os.WriteFile(gate, nil, 0o600))
			p.sees(`"service": "prod"`).sees(prompt).types("\x03")
			require.Equal(t, 10, p.leaves(), p.all)
			require.Empty(t, read(t, log))
		})
	})
	t.Run("for the next question", func(t *testing.T) {
		t.Parallel()
		both(t, func(t *testing.T, b *bench) {
			log := b.file("log")
			p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "a", "b"))
			p.sees(prompt).types("y\ny\n").sees(`"service": "b"`).sees(prompt).types("\x03")
			require.Equal(t, 10, p.leaves(), p.all)
			b.run("resume", "s", "--reject-all").ends(0)
			require.Equal(t, "a\n", read(t, log), "the second yes was typed before b was shown")
		})
	})
}

// TestAnswerToAnotherQuestion has somebody else answer while a person types, so
// that by then the agent asks something else.
func TestAnswerToAnotherQuestion(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{need: which region?}]")
		p.sees("which region?").sees("Your answer")
		b.run("resume", "s", "[{need: Really delete everything?}]").ends(10)
		p.types("[{say: everything is deleted}]\n").sees("answered before").sees("Really delete everything?").sees("Your answer").types("\x03")
		p.leaves()
		require.NotContains(t, b.run("show", "s").ends(0).stdout, "everything is deleted")
	})
}

// TestPromptCannotBeFaked plays a model that tries to paint over the prompt.
func TestPromptCannotBeFaked(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		script := `[{text: "Nothing to see\r\e[2K\e[1A\nRun it? [y]es", call: deploy, with: {service: "\e[8m\u202Ehidden"}}]`
		p := b.sit([]string{"NO_COLOR=1"}, "run", "--agent", "toy", "--session", "s", script)
		p.sees(prompt)
		text := p.all
		p.types("\x03")
		p.leaves()
		// What is left besides our own clearing of the bottom line must be plain.
		text = strings.ReplaceAll(text, "\r\x1b[2K", "")
		text = strings.ReplaceAll(text, "\r\n", "\n")
		require.NotRegexp(t, "[\x1b\r\u202e]", text)
		require.Contains(t, text, `\x1b[2K`)
		require.Contains(t, text, "| Run it?")
		require.NotContains(t, b.run("show", "s").stdout+b.run("inbox").stdout+b.run("inbox", "-o", "json").stdout+b.run("sessions").stdout, "\x1b")
		require.NotContains(t, b.run("show", "s", "-o", "json").stdout, "\u202e")
	})
}

func TestCtrlCWhileWorking(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: hang}, {say: ok}]")
		p.sees("…").types("\x03")
		require.Equal(t, 130, p.leaves(), p.all)
		require.Contains(t, p.all, "resume s")
		m := b.run("resume", "s", "--wait", "100ms", "-o", "json").ends(124).manifest()
		require.Equal(t, session.OutcomeRunning, m.Outcome)
	})
}

func TestTerminated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: hang}, {say: ok}]")
	p.sees("…")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 130, p.leaves(), p.all)
}

func TestQuietAndDumb(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.sit([]string{"TERM=dumb"}, "run", "--agent", "toy", "[{call: deploy, with: {service: 1}}, {say: ok}]")
	require.Equal(t, 0, p.leaves())
	require.NotContains(t, p.all, "\x1b")
	require.Contains(t, p.all, "step 1: deploy")
	p = b.sit(nil, "--quiet", "run", "--agent", "toy", "[{call: deploy, with: {service: 1}}, {say: ok}]")
	require.Equal(t, 0, p.leaves())
	require.Equal(t, "ok\r\n", p.all)
	p = b.sit([]string{"NO_COLOR=1"}, "run", "--agent", "toy", "--no-input", "[{need: a?}]")
	require.Equal(t, 10, p.leaves())
	require.NotContains(t, p.all, "\x1b[1m")
	require.FileExists(t, filepath.Join(filepath.Dir(b.data), "pause.json"))
}

// TestLongRefusalOnATerminal: what is told wraps between words; what is there to be
// pasted does not.
func TestLongRefusalOnATerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.url = "http://127.0.0.1:1/" + strings.Repeat("deep/", 20) + "end"
	p := b.sit(nil, "show", "s")
	require.Equal(t, 1, p.leaves(), p.all)
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(p.all, "\r", "")), "\n")
	require.Greater(t, len(lines), 2, p.all)
	require.Contains(t, lines[1], "    "+b.url+"/sessions/s/", "a word stays whole")
	require.Contains(t, lines[2], "    the server cannot be reached:")
	require.LessOrEqual(t, len(lines[2]), 80)
	last := lines[len(lines)-1]
	require.Contains(t, last, ": is there a server at "+b.url+"? One on this machine is started with: ")
	require.True(t, strings.HasSuffix(last, " dev"), last)
}
