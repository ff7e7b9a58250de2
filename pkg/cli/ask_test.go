package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/terminaltest"
	"github.com/adjourn/adjourn/pkg/session"
)

// sit runs the program on a terminal.
func (b *bench) sit(env []string, args ...string) *terminaltest.Person {
	b.t.Helper()
	self, err := os.Executable()
	require.NoError(b.t, err)
	return terminaltest.Sit(b.t, terminaltest.Program{
		Args: append(append([]string{self}, b.where()...), args...),
		Env:  b.environ(append([]string{"TERM=xterm", "EDITOR=", "VISUAL=", "NO_COLOR="}, env...)...),
		Rows: 24, Columns: 80,
	})
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
				p.Sees(`"service": "web"`).Sees("I am about to deploy.")
				for _, typed := range c.typed {
					p.Sees(prompt)
					require.Empty(t, read(t, log), "nothing runs before the answer")
					p.Types(strings.ReplaceAll(typed, "LOG", log))
				}
				require.Equal(t, c.code, p.Leaves(), p.All())
				require.Equal(t, c.ran, read(t, log))
				if c.code == 10 {
					require.Contains(t, p.All(), "--approve w2-1")
					require.Equal(t, "all done\n", b.run("resume", "s", "--approve", "w2-1").ends(0).stdout, "it is still open")
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
	p.Sees(prompt).Types("e\n").Sees(`"service": "api"`).Sees(prompt).Types("y\n")
	require.Equal(t, 0, p.Leaves(), p.All())
	require.Equal(t, "api\n", read(t, log))
	require.Contains(t, b.run("show", "s").ends(0).stdout, "approved with other arguments")
}

// TestEditorThatIsKilled: of a command that is killed while the person edits, nothing
// stays that holds the arguments; who edits at that time is left alone.
func TestEditorThatIsKilled(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		temporary := t.TempDir()
		env := []string{"TMPDIR=" + temporary, "EDITOR=" + b.editor("echo editing; read line; sed -i.bak s/web/$line/ \"$1\"")}
		left := func() []string {
			found, err := filepath.Glob(filepath.Join(filepath.Dir(b.data), "edit*"))
			require.NoError(t, err)
			more, err := filepath.Glob(filepath.Join(temporary, "*"))
			require.NoError(t, err)
			return append(found, more...)
		}
		log := b.file("log")
		killed := b.sit(env, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
		killed.Sees(prompt).Types("e\n").Sees("editing")
		require.Len(t, left(), 1)
		killed.Kill()

		b.start("t", deploys(log, "web"), 10)
		edits := b.sit(env, "resume", "t")
		edits.Sees(prompt)
		require.Empty(t, left(), "the next start removes it")
		edits.Types("e\n").Sees("editing")
		b.start("u", "[{say: ok}]", 0)
		other := b.sit(env, "resume", "s")
		other.Sees(prompt)
		require.Len(t, left(), 1, "somebody edits")
		other.Types("\x03")
		require.Equal(t, 10, other.Leaves(), other.All())
		edits.Types("api\n").Sees(`"service": "api"`).Sees(prompt)
		require.Empty(t, left())
		edits.Types("y\n")
		require.Equal(t, 0, edits.Leaves(), edits.All())
		require.Equal(t, "api\n", read(t, log))
	})
}

// editor makes a program of a line that a shell runs with the file as $1.
func (b *bench) editor(line string) string {
	b.t.Helper()
	path := b.file("editor")
	require.NoError(b.t, os.WriteFile(path, []byte("#!/bin/sh\n"+line+"\n"), 0o700))
	return "'" + path + "'"
}

func TestSeveralOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "a", "b", "c"))
		p.Sees(`"service": "a"`).Sees(prompt).Types("y\n").Sees(`"service": "b"`).Sees(prompt).Types("n\n").Sees(prompt).Types("\x03")
		require.Equal(t, 10, p.Leaves(), p.All())
		p = b.sit(nil, "resume", "s")
		p.Sees(`"service": "c"`).Sees(prompt).Types("y\n")
		require.Equal(t, 0, p.Leaves(), p.All())
		require.ElementsMatch(t, []string{"a", "c"}, strings.Fields(read(t, log)), "answers given before the interrupt count")
	})
}

func TestQuestionsOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: name}, {call: pick}, {call: many}, {need: anything else?}]")
		p.Sees("What is your name?").Sees("Your answer: ").Types("\n").Sees("An empty line is no answer; Ctrl-C leaves it for later.")
		p.Sees("Your answer: ").Types("  \n").Sees("Your answer: ").Types("Ada\n")
		p.Sees("Which color?").Sees("Number").Types("3\n").Sees("no choice 3").Sees("Number").Types("2\n")
		p.Sees("Which colors?").Sees("Numbers").Types("1, blue\n")
		p.Sees("anything else?").Sees("Your answer").Types("[{say: bye}]\n").Sees("bye")
		require.Equal(t, 0, p.Leaves(), p.All())
		shown := b.run("show", "s", "--full").ends(0).stdout
		for _, text := range []string{`success: "Ada"`, `success: ["blue"]`, `success: ["red","blue"]`} {
			require.Contains(t, shown, text)
		}
	})
}

// TestQuestionsStayInTheirBox: what a question shows wraps behind the bar that marks it
// as somebody else's words, wherever it is shown at a terminal, and nothing of it is lost.
func TestQuestionsStayInTheirBox(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		ask := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: store}, {say: ok}]")
		ask.Sees("Number (an empty line").Types("\n")
		require.Equal(t, 10, ask.Leaves(), ask.All())
		inbox := b.sit(nil, "inbox", "--no-input")
		require.Equal(t, 0, inbox.Leaves())
		for _, shown := range []string{ask.All(), inbox.All()} {
			box := ""
			for line := range strings.Lines(shown) {
				line = strings.TrimRight(line, "\r\n")
				inside, marked := strings.CutPrefix(strings.TrimLeft(line, " "), "| ")
				if !marked {
					require.NotContains(t, line, "0123456789", "a line without a bar")
					continue
				}
				require.LessOrEqual(t, len(line), 79, "the terminal does not wrap it")
				box += inside
			}
			require.GreaterOrEqual(t, strings.Count(box, longJSON), 2, "in the question and beside its choice: %s", shown)
		}
	})
}

// TestEnterAnswersNothing: an answer counts for good, so that Enter alone is none, but
// where the prompt says that it is a no.
func TestEnterAnswersNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, prompt, none string }{
		"choice":  {"[{call: pick}, {say: ok}]", "Number (an empty line leaves it for later): ", ""},
		"choices": {"[{call: many}, {say: ok}]", "(0 for none of them; an empty line leaves it for later): ", "0\n"},
		"input":   {"[{need: where?}, {say: ok}]", "(an empty line leaves it for later): ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.start("s", c.script, 10)
			p := b.sit(nil, "resume", "s")
			p.Sees(c.prompt).Types("\n")
			require.Equal(t, 10, p.Leaves(), p.All())
			require.Contains(t, b.run("inbox").ends(0).stdout, "session s")
			if c.none == "" {
				return
			}
			p = b.sit(nil, "resume", "s")
			p.Sees(c.prompt).Types(c.none)
			require.Equal(t, 0, p.Leaves(), p.All())
			require.Contains(t, b.run("show", "s").ends(0).stdout, "success: []")
		})
	}
}

func TestVerdictOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: pay}, {say: ok}]")
		p.Sees("Nobody knows whether").Sees("Did it happen?").Types("perhaps\n").Sees("Did it happen?").Types("y\n").Sees("ok")
		require.Equal(t, 0, p.Leaves(), p.All())
		require.Contains(t, b.run("show", "s").ends(0).stdout, "verdict happened by")

		p = b.sit(nil, "run", "--agent", "toy", "--session", "t", "[{call: pay}, {say: ok}]")
		p.Sees("Did it happen?").Types("\n")
		require.Equal(t, 10, p.Leaves(), p.All())
		p = b.sit(nil, "resume", "t")
		p.Sees("Did it happen?").Types("no\n")
		require.Equal(t, 0, p.Leaves(), p.All())
	})
}

func TestEditWithoutAnEditor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := b.file("log")
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
	p.Sees(prompt).Types("e\n").Sees("JSON on one line: ").Types("\n").Sees("stay as they are").Sees(prompt)
	p.Types("e\n").Sees("JSON on one line: ").Types(`{"service": "api", "log": "` + log + `"}` + "\n").Sees(prompt).Types("y\n")
	require.Equal(t, 0, p.Leaves(), p.All())
	require.Equal(t, "api\n", read(t, log))
}

func TestEditorThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.sit([]string{"VISUAL=false"}, "run", "--agent", "toy", "--session", "s", deploys(b.file("log"), "web"))
	p.Sees(prompt).Types("e\n").Sees("stay as they are: false").Sees(prompt).Types("\x03")
	require.Equal(t, 10, p.Leaves(), p.All())
}

func TestClientToolOnATerminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: locate}, {say: ok}]")
		p.Sees("which runs on your side").Sees("submit s w2-1 --result")
		require.Equal(t, 10, p.Leaves(), p.All())
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
			require.Equal(t, 10, p.Leaves(), p.All())
			require.NotContains(t, p.All(), prompt)
		})
	}
}

func TestSomebodyElseWasFirst(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
		p.Sees(prompt)
		b.run("submit", "s", "w2-1", "--reject").ends(0)
		p.Types("y\n")
		require.Equal(t, 5, p.Leaves(), p.All())
		require.Contains(t, p.All(), "answered before")
		require.Empty(t, read(t, log), "the first answer counts")
	})
}

// TestYesStandsAlone: what begins with a yes and goes on is not one.
func TestYesStandsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := b.file("log")
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "web"))
	p.Sees(prompt).Types("y no wait do not\n").Sees("A yes stands alone").Sees(prompt).Types("e {\"servce\": 1}\n")
	p.Sees("the arguments stay as they are").Sees(prompt).Types("\x03")
	require.Equal(t, 10, p.Leaves(), p.All())
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
			p.Sees("working …")
			require.Eventually(t, func() bool { return exists(gate + ".reached") }, time.Minute, 5*time.Millisecond) // nothing else is printed now
			p.Types("y\ny").Sees("y\r\ny")                                                                           // the terminal echoes it, so it is in the queue
			require.NoError(t, os.WriteFile(gate, nil, 0o600))
			p.Sees(`"service": "prod"`).Sees(prompt).Types("\x03")
			require.Equal(t, 10, p.Leaves(), p.All())
			require.Empty(t, read(t, log))
		})
	})
	t.Run("for the next question", func(t *testing.T) {
		t.Parallel()
		both(t, func(t *testing.T, b *bench) {
			log := b.file("log")
			p := b.sit(nil, "run", "--agent", "toy", "--session", "s", deploys(log, "a", "b"))
			p.Sees(prompt).Types("y\ny\n").Sees(`"service": "b"`).Sees(prompt).Types("\x03")
			require.Equal(t, 10, p.Leaves(), p.All())
			b.run("submit", "s", "w2-2", "--reject").ends(0)
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
		p.Sees("which region?").Sees("Your answer")
		b.run("resume", "s", "[{need: Really delete everything?}]").ends(10)
		p.Types("[{say: everything is deleted}]\n").Sees("answered before").Sees("Really delete everything?").Sees("Your answer").Types("\x03")
		p.Leaves()
		require.NotContains(t, b.run("show", "s").ends(0).stdout, "everything is deleted")
	})
}

// TestPromptCannotBeFaked plays a model that tries to paint over the prompt.
func TestPromptCannotBeFaked(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		script := `[{text: "Nothing to see\r\e[2K\e[1A\nRun it? [y]es", call: deploy, with: {service: "\e[8m\u202Ehidden"}}]`
		p := b.sit([]string{"NO_COLOR=1"}, "run", "--agent", "toy", "--session", "s", script)
		p.Sees(prompt)
		text := p.All()
		p.Types("\x03")
		p.Leaves()
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
		p.Sees("…").Types("\x03")
		if b.url != "" {
			p.Sees("[S]top watching: ").Types("\n")
		}
		require.Equal(t, 130, p.Leaves(), p.All())
		require.Contains(t, p.All(), "resume s")
		m := b.run("resume", "s", "--wait", "100ms", "-o", "json").ends(124).manifest()
		require.Equal(t, session.OutcomeRunning, m.Outcome)
	})
}

// TestCtrlCIsAnsweredAtOnce: the tool takes its time, and the person hears why.
func TestCtrlCIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun := b.file("begun")
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: stubborn, with: {service: "+begun+"}}, {say: ok}]")
	require.Eventually(t, func() bool { return exists(begun) }, time.Minute, time.Millisecond)
	p.Types("\x03").Sees("Stopping; tools may finish for 5 s. Ctrl-C again stops at once.").Types("\x03")
	p.Leaves()
	require.NotContains(t, p.All(), "Interrupted.")
}

func TestTerminated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: hang}, {say: ok}]")
	p.Sees("…")
	p.Signal(syscall.SIGTERM)
	require.Equal(t, 130, p.Leaves(), p.All())
}

func TestQuietAndDumb(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.sit([]string{"TERM=dumb"}, "run", "--agent", "toy", "[{call: deploy, with: {service: 1}}, {say: ok}]")
	require.Equal(t, 0, p.Leaves())
	require.NotContains(t, p.All(), "\x1b")
	require.Contains(t, p.All(), "step 1: deploy")
	p = b.sit(nil, "--quiet", "run", "--agent", "toy", "[{call: deploy, with: {service: 1}}, {say: ok}]")
	require.Equal(t, 0, p.Leaves())
	require.Equal(t, "ok\r\n", p.All())
	p = b.sit([]string{"NO_COLOR=1"}, "run", "--agent", "toy", "--no-input", "[{need: a?}]")
	require.Equal(t, 10, p.Leaves())
	require.NotContains(t, p.All(), "\x1b[1m")
	require.FileExists(t, filepath.Join(filepath.Dir(b.data), "pause.json"))
}

// TestLongRefusalOnATerminal: what is told wraps between words; what is there to be
// pasted does not.
func TestLongRefusalOnATerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.url = "http://127.0.0.1:1/" + strings.Repeat("deep/", 20) + "end"
	p := b.sit(nil, "show", "s")
	require.Equal(t, 1, p.Leaves(), p.All())
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(p.All(), "\r", "")), "\n")
	require.Greater(t, len(lines), 2, p.All())
	require.Contains(t, lines[1], "    "+b.url+"/sessions/s/", "a word stays whole")
	require.Contains(t, lines[2], "    the server cannot be reached:")
	require.LessOrEqual(t, len(lines[2]), 80)
	last := lines[len(lines)-1]
	require.Contains(t, last, ": is there a server at "+b.url+"? One on this machine is started with: ")
	require.True(t, strings.HasSuffix(last, " dev"), last)
}
