package cli_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

var update = flag.Bool("update", false, "write the golden files of new cases")

// deploys is a script that asks to deploy services in one reply, logging to path.
func deploys(path string, services ...string) string {
	var calls []string
	for _, s := range services {
		calls = append(calls, "{call: deploy, with: {service: "+s+", log: "+strconv.Quote(path)+"}}")
	}
	return "[{text: I am about to deploy., calls: [" + strings.Join(calls, ", ") + "]}, {say: all done}]"
}

// random parts of a manifest: checkpoint tokens, nonces, the folder of the test.
var (
	checkpoint = regexp.MustCompile(`("checkpoint_id": "|-c )[A-Za-z0-9_-]+`)
	moment     = regexp.MustCompile(`[0-9-]{10} [0-9:]{8}( +\+[0-9a-z.]+)? +|(?m)^[0-9a-z.]+ at work.*$`)
	ago        = regexp.MustCompile(`just now|[0-9a-z.]+ ago`)
	nonce      = regexp.MustCompile(`("approval_id": )"[^"]+"`)
)

func (b *bench) golden(name, text string) {
	b.t.Helper()
	if !strings.Contains(name, ".") {
		name += ".json"
	}
	text = strings.ReplaceAll(b.sameAs(text), b.dir, "DIR")
	text = checkpoint.ReplaceAllString(text, "${1}CHECKPOINT")
	text = nonce.ReplaceAllString(text, `$1"NONCE"`)
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(b.t, os.MkdirAll("testdata", 0o755))
		require.NoError(b.t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(b.t, err, "make it with: go test ./pkg/cli -update")
	require.Equal(b.t, string(want), text)
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		code   int
	}{
		"completed":    {"[{say: all done}]", 0},
		"approval":     {"[{text: May I?, call: deploy, with: {service: a <b> & c}}]", 10},
		"approvals":    {"[{calls: [{call: deploy, with: {service: a}}, {call: deploy, with: {service: b}}]}]", 10},
		"many":         {"[{calls: [{call: deploy, with: {service: a}}, {call: deploy, with: {service: b}}, {call: deploy, with: {service: " + strings.Repeat("long ", 40) + "}}, {call: deploy, with: {service: d}}]}]", 10},
		"question":     {"[{call: pick}]", 10},
		"client_tool":  {"[{call: locate}]", 10},
		"unknown":      {"[{call: pay}]", 10},
		"input":        {"[{need: which region?}]", 10},
		"mixed":        {"[{calls: [{call: pick}, {call: deploy, with: {service: a}}, {call: locate}]}]", 10},
		"failed":       {"[{fail: refused}]", 1},
		"bad_argument": {"[{call: deploy, with: {service: 1}}, {say: ok}]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, b *bench) {
				r := b.run("run", "--agent", "toy", "--session", "s", "-o", "json", c.script).ends(c.code)
				b.golden(name, r.stdout)
				b.runText(name, c.script, c.code)
				if c.code == 10 && b.url == "" {
					require.Equal(t, r.stdout, read(t, filepath.Join(filepath.Dir(b.data), "pause.json")), "pause.json is what was printed")
				} else {
					require.NoFileExists(t, filepath.Join(filepath.Dir(b.data), "pause.json"))
				}
			})
		})
	}
}

// runText has the words people see in a golden file too, inbox and journal with them.
func (b *bench) runText(name, script string, code int) {
	b.t.Helper()
	other := setup(b.t)
	if b.url != "" {
		other.serve()
	}
	r := other.run("run", "--agent", "toy", "--session", "s", script).ends(code)
	inbox := other.run("inbox").ends(0)
	shown := other.run("show", "s").ends(0)
	shown.stdout = moment.ReplaceAllString(shown.stdout, "AT ")
	text := "$ adjourn run\n" + r.stdout + "-- stderr\n" + r.stderr + "\n$ adjourn inbox\n" + inbox.stdout + "-- stderr\n" + inbox.stderr + "\n$ adjourn show\n" + shown.stdout
	other.golden(name+".txt", ago.ReplaceAllString(text, "AGO"))
}

func TestPauseFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := filepath.Join(filepath.Dir(b.data), "pause.json")
	b.start("one", "[{need: a?}]", 10)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	b.start("two", "[{need: b?}]", 10)
	b.run("resume", "one", "[{say: x}]").ends(0)
	require.Contains(t, read(t, path), `"two"`, "another session's file stays")
	b.run("resume", "two", "[{say: x}]").ends(0)
	require.NoFileExists(t, path, "nobody waits any more")
	left, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestHintWorksWhenPasted(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		log := b.file("log")
		m := b.start("s", deploys(log, "web"), 10)
		require.Contains(t, m.ResumeHint, b.words())
		require.Empty(t, read(t, log), "nothing runs before it is approved")

		first := b.shell(m.ResumeHint).ends(0)
		require.Equal(t, "all done\n", first.stdout)
		require.Equal(t, "web\n", read(t, log))

		second := b.shell(m.ResumeHint).ends(0)
		require.Equal(t, "all done\n", second.stdout)
		require.Contains(t, second.stderr, "Already settled")
		require.Equal(t, "web\n", read(t, log), "it does not happen twice")

		other := b.shell(strings.Replace(m.ResumeHint, "--approve", "--reject", 1)).ends(5)
		require.Contains(t, other.stderr, "answered before")
	})
}

func TestEveryHintWorksWhenPasted(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"approval":  "[{call: deploy, with: {service: a}}, {say: ok}]",
		"approvals": "[{calls: [{call: deploy, with: {service: a}}, {call: deploy, with: {service: b}}]}, {say: ok}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, b *bench) {
				b.program = b.install()
				m := b.start("-dash-", script, 10)
				require.Equal(t, "ok\n", b.shell(m.ResumeHint).ends(0).stdout)
			})
		})
	}
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.program = b.install()
		m := b.run("run", "--agent", "toy", "--wait", "0s", "-o", "json", "[{say: ok}]").ends(0).manifest()
		require.Equal(t, "ok\n", b.shell(m.ResumeHint).ends(0).stdout)
	})
}

func TestDataInHints(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		env, flag string
		want      bool
	}{
		"environment": {env: b.data, want: true},
		"flag":        {flag: b.data, want: true},
		"both":        {env: b.file("other.db"), flag: b.data, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			b.env["ADJOURN_DATA"] = c.env
			args := []string{"run", "--agent", "toy", "-o", "json", "[{need: a?}]"}
			if c.flag != "" {
				args = append([]string{"--data", c.flag}, args...)
			}
			m := b.runIn(t.Context(), "", args...).ends(10).manifest()
			require.Equal(t, c.want, strings.Contains(m.ResumeHint, "--data '"+b.data+"'"), m.ResumeHint)
		})
	}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		ran  string
	}{
		"unlisted are rejected": {[]string{"--approve", "w2-2"}, 0, "b\n"},
		"some and some":         {[]string{"--approve", "w2-1", "--approve", "w2-2", "--reject", "w2-3"}, 0, "a\nb\n"},
		"all":                   {[]string{"--approve-all"}, 0, "a\nb\nc\n"},
		"all but":               {[]string{"--approve-all", "--reject", "w2-1"}, 0, "b\nc\n"},
		"none":                  {[]string{"--reject-all", "--reason", "not today"}, 0, ""},
		"edited":                {[]string{"--edit", `w2-1={"service": "z", "log": "LOG"}`}, 0, "z\n"},
		"unknown call":          {[]string{"--approve", "w9-9"}, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, b *bench) {
				log := b.file("log")
				m := b.start("s", deploys(log, "a", "b", "c"), 10)
				args := []string{"resume", "-c", m.CheckpointID, "-o", "json"}
				for _, arg := range c.args {
					args = append(args, strings.ReplaceAll(arg, "LOG", log))
				}
				r := b.run(args...).ends(c.code)
				lines := strings.Split(strings.TrimSuffix(read(t, log), "\n"), "\n")
				require.ElementsMatch(t, strings.Split(strings.TrimSuffix(c.ran, "\n"), "\n"), lines, "in any order: they run in parallel")
				if c.code != 0 {
					require.Equal(t, session.OutcomeError, r.manifest().Outcome)
					require.NotEmpty(t, r.manifest().ResumeHint, "what is still pending is said with the refusal")
				}
			})
		})
	}
}

func TestRejectionIsTold(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", deploys(b.file("log"), "a"), 10)
		b.run("resume", "s", "--reject", "w2-1", "--reason", "not on a Friday").ends(0)
		require.Contains(t, b.run("resume", "s", "--reject", "w2-1").ends(5).stderr, "the answer there is: rejected: not on a Friday")
		shown := b.run("show", "s").ends(0).stdout
		require.Contains(t, shown, "rejected: not on a Friday")
		require.Contains(t, shown, "not approved by the user")
		require.Contains(t, shown, "by ada")
	})
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		m := b.start("s", "[{call: deploy, with: {service: a}}, {call: deploy, with: {service: b}}, {say: ok}]", 10)
		next := b.run("resume", "-c", m.CheckpointID, "--approve", "w2-1", "-o", "json").ends(10).manifest()
		require.NotEqual(t, m.CheckpointID, next.CheckpointID)

		again := b.run("resume", "-c", m.CheckpointID, "--approve", "w2-1", "-o", "json").ends(10)
		require.Equal(t, next, again.manifest(), "the same decision again prints where the session stands")
		require.Contains(t, again.stderr, "Already settled")

		other := b.run("resume", "-c", m.CheckpointID, "--reject", "w2-1", "-o", "json").ends(5).manifest()
		require.Equal(t, session.OutcomeError, other.Outcome)
		stale := b.run("resume", "-c", m.CheckpointID, "--approve-all", "-o", "json")
		require.Contains(t, []int{5, 10}, stale.code)
		pending := next.PauseReason.PendingToolCalls[0].WaitID
		b.run("resume", "-c", m.CheckpointID, "--approve", pending, "-o", "json").ends(5)
		b.run("resume", "-c", m.CheckpointID, "just go on").ends(5)
		b.run("resume", "-c", next.CheckpointID, "other-session", "--approve", pending).ends(2)
		require.Equal(t, "ok\n", b.run("resume", "-c", next.CheckpointID, "s", "--approve", pending).ends(0).stdout)
	})
}

func TestResumeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		m := b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
		r := b.run("resume", "s", "-o", "json").ends(5).manifest()
		require.Equal(t, string(runtime.CodeStillWaiting), r.Error.Code)
		require.Contains(t, m.ResumeHint, "--approve w2-1")
		require.Equal(t, "adjourn "+b.words()+" show s", r.ResumeHint, "the hint of a refusal decides nothing, and is not refused as well")
		require.Equal(t, m.PauseReason, r.PauseReason)
		b.run("resume", "s", "a message").ends(5)
		b.run("resume", "nobody", "--approve-all").ends(3)
		b.run("run", "--session", "s", "next").ends(5)
		b.run("resume", "s", "--approve", "w2-1").ends(0)
		b.run("resume", "s").ends(5)
	})
}

// TestResumeAfterTheEnd: what goes on then is the next turn, with what was to be said.
func TestResumeAfterTheEnd(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		b.start("s", "[{say: ok}]", 0)
		for message, want := range map[string]string{
			"":                         "MESSAGE",
			"go on":                    "'go on'",
			"- say: more":              "-- '- say: more'",
			strings.Repeat("long", 99): "MESSAGE",
			"two\nlines":               "MESSAGE",
		} {
			args := []string{"resume", "s", "-o", "json"}
			if message != "" {
				args = append(args, message)
			}
			r := b.run(args...).ends(5)
			require.True(t, strings.HasSuffix(r.manifest().ResumeHint, " run --session s "+want), r.manifest().ResumeHint)
			require.Contains(t, r.stderr, "to say the next thing: "+r.manifest().ResumeHint)
		}
		hint := b.run("resume", "s", "-o", "json", "- say: more").ends(5).manifest().ResumeHint
		require.Equal(t, "more\n", b.shell(hint).ends(0).stdout)
		b.start("f", "[{fail: refused}]", 1)
		require.Empty(t, b.run("resume", "f", "-o", "json").ends(5).manifest().ResumeHint, "what has failed takes no next turn")
	})
}

func TestMessage(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{need: which region?}]", 10)
		require.Equal(t, "on it\n", b.run("resume", "s", "- say: on it").ends(0).stdout, "a list is a message, not a flag")
	})
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		answer []string
		wrong  []string
		other  []string
	}{
		"client result":   {"[{call: locate}, {say: ok}]", []string{"--result", "null"}, []string{"--reply", "x"}, []string{"--result", "1"}},
		"client error":    {"[{call: locate}, {say: ok}]", []string{"--error", "no signal"}, []string{"--approve"}, []string{"--error", "other"}},
		"reply":           {"[{call: name}, {say: ok}]", []string{"--reply", "Ada"}, []string{"--result", "1"}, []string{"--reply", "x"}},
		"choice":          {"[{call: pick}, {say: ok}]", []string{"--select", "red"}, []string{"--result", "1"}, []string{"--select", "blue"}},
		"choices":         {"[{call: many}, {say: ok}]", []string{"--select", "red", "--select", "blue"}, []string{"--verdict", "happened"}, []string{"--select", ""}},
		"approval":        {"[{call: deploy, with: {service: a}}, {say: ok}]", []string{"--approve"}, []string{"--reply", "x"}, []string{"--reject"}},
		"verdict":         {"[{call: pay}, {say: ok}]", []string{"--verdict", "happened", "--result", "1"}, []string{"--reply", "x"}, []string{"--verdict", "not_happened"}},
		"choice in words": {"[{call: pick}, {say: ok}]", []string{"--select", "red"}, []string{"--reply", "red"}, []string{"--select", "blue"}},
		"words chosen":    {"[{call: name}, {say: ok}]", []string{"--reply", "red"}, []string{"--select", "red"}, []string{"--reply", "blue"}},
		"message":         {"[{need: where?}, {say: ok}]", []string{"--reply", "here"}, []string{"--result", "1"}, []string{"--reply", "there"}},
		"edited":          {"[{call: deploy, with: {service: a}}, {say: ok}]", []string{"--edit", `{"service": "b"}`}, []string{"--result", "1"}, []string{"--approve"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, b *bench) {
				m := b.start("s", c.script, 10)
				item := append(m.PauseReason.PendingToolCalls, m.PauseReason.Pending...)[0]
				submit := func(answer []string) result {
					return b.run(append([]string{"submit", "s", item.WaitID}, answer...)...)
				}
				wrong := submit(append(c.wrong, "-o", "json")).ends(2)
				require.Equal(t, string(runtime.CodeWrongKind), wrong.manifest().Error.Code)
				require.Regexp(t, "answer it with .*"+c.answer[0]+"\\b.*, not with "+c.wrong[0], wrong.stderr, "the right flag is named")
				if item.ID != item.WaitID {
					byCall := b.run(append([]string{"submit", "s", item.ID}, c.answer...)...).ends(2)
					require.Contains(t, byCall.stderr, item.ID+" is a call, and an answer names its wait: "+item.WaitID)
				}
				if item.Kind != session.WaitClientTool {
					byCall := b.run(append([]string{"submit", "s", "--call", item.ID}, c.answer...)...).ends(2)
					require.Contains(t, byCall.stderr, item.WaitID)
				}
				require.Equal(t, "ok\n", submit(c.answer).ends(0).stdout)
				require.Contains(t, submit(c.answer).ends(0).stderr, "Already settled")
				submit(c.other).ends(5)
			})
		})
	}
}

// TestAnswersToTheWrongThing are refused in a person's words, with what is right.
func TestAnswersToTheWrongThing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{calls: [{call: pick}, {call: locate}, {call: deploy, with: {service: a}}]}, {say: ok}]", 10)
		const waiting = "What waits now: w2-2 (result of locate, which runs on your side); w2-3 (approval of deploy); w2-1 (question of pick)"
		for _, c := range []struct {
			args []string
			code int
			says string
		}{
			{[]string{"resume", "s", "--approve", "w2-1"}, 2, "w2-1 is the question of pick: answer it with --select, not with a decision on approvals"},
			{[]string{"resume", "s", "--approve", "w2-3", "--reject", "w2-2"}, 2, "w2-2 is the result of locate, which runs on your side: answer it with --result or --error"},
			{[]string{"resume", "s", "--edit", "w2-1={}"}, 2, "w2-1 is the question of pick"},
			{[]string{"resume", "s", "--approve", "w9-9"}, 3, `there is no wait "w9-9". ` + waiting},
			{[]string{"submit", "s", "w9-9", "--approve"}, 3, `there is no wait "w9-9". ` + waiting},
			{[]string{"submit", "s", "--call", "c9-9", "--result", "1"}, 3, `no call "c9-9" waits for a result of yours, or did. ` + waiting},
			{[]string{"submit", "s", "--call", "c2-3", "--result", "1"}, 3, `no call "c2-3" waits for a result of yours`},
			{[]string{"submit", "s", "--call", "c9-9", "--approve"}, 2, "--call goes with --result or --error"},
			{[]string{"submit", "s", "--call", "c2-2", "--reply", "x"}, 2, "c2-2 is the result of locate, which runs on your side: answer it with --result or --error, not with --reply"},
			{[]string{"submit", "s", "--call", "c2-3", "--approve"}, 2, "c2-3 is a call, and an answer names its wait: w2-3, the approval of deploy"},
		} {
			r := b.run(c.args...).ends(c.code)
			require.Contains(t, r.stderr, c.says, c.args)
			require.NotContains(t, r.stderr, "answer of kind", c.args)
		}
	})
}

// TestAnAnsweredWaitIsNotAskedForAgain: a wrong answer to what was answered before is told
// what was answered, not how: that would be refused as well.
func TestAnAnsweredWaitIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{call: pick}, {call: locate}, {need: which region}, {say: ok}]", 10)
		b.run("submit", "s", "w2-1", "--select", "red").ends(10)
		const answered = "w2-1, the question of pick, was answered before (replied red). What waits now: w5-1 (result of locate, which runs on your side)"
		for _, words := range [][]string{
			{"resume", "s", "--approve", "w2-1"}, {"submit", "s", "w2-1", "--approve"}, {"submit", "s", "w2-1", "--select", "CHOICE"},
		} {
			r := b.run(words...).ends(5)
			require.Contains(t, r.plain(), answered, words)
			require.NotContains(t, r.stderr, "answer it with", words)
		}
		b.run("submit", "s", "--call", "c5-1", "--result", "1").ends(10)
		require.Contains(t, b.run("submit", "s", "--call", "c5-1", "--reply", "x").ends(5).plain(), "c5-1, the result of locate, which runs on your side, was answered before (result 1). What waits now: w8-1 (your answer)")
		require.Contains(t, b.run("resume", "s", "--approve", "w8-1").ends(2).plain(), "w8-1 is the wait for your answer: answer it with --reply, not with a decision on approvals")
	})
}

// plain is what was said on stderr, without the wrapping of lines.
func (r result) plain() string { return strings.Join(strings.Fields(r.stderr), " ") }

// TestHowSeveralChoicesAreGiven: a question of which several choices count says so beside
// the command that has one word for them.
func TestHowSeveralChoicesAreGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const says = "several: repeat --select; none: --select ''"
	paused := b.run("run", "--agent", "toy", "--session", "s", "[{call: many}, {say: ok}]").ends(10)
	for _, shown := range []string{paused.stdout, b.run("inbox").ends(0).stdout, b.run("show", "s").ends(0).stdout, b.run("submit", "s", "w2-1", "--select", "CHOICE").ends(2).stderr} {
		require.Contains(t, shown, says)
	}
	b.run("run", "--agent", "toy", "--session", "one", "[{call: pick}, {say: ok}]").ends(10)
	require.NotContains(t, b.run("show", "one").ends(0).stdout, says)
}

func TestSubmitOneOfSeveral(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a", "b"), 10)
		m := b.run("submit", "s", "w2-1", "--approve", "-o", "json").ends(10).manifest()
		require.Len(t, m.PauseReason.PendingToolCalls, 1, "the other one stays open")
		b.run("submit", "s", m.PauseReason.PendingToolCalls[0].WaitID, "--reject", "--reason", "no").ends(0)
		require.Equal(t, "a\n", read(t, log))
		b.run("submit", "s", "w9-9", "--approve").ends(3)
	})
}

// TestOnlyStored: a command that leaves the work to others exits with 0 once what it
// was asked for is written down, whatever the session does next; refused, it does not.
func TestOnlyStored(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		gate := "{call: gate, with: {service: " + b.file("gate") + "}}, "
		started := b.run("run", "--agent", "toy", "--session", "r", "--wait", "0s", "-o", "json", "["+gate+"{say: ok}]").ends(0).manifest()
		require.Equal(t, session.OutcomeRunning, started.Outcome)
		require.Contains(t, b.run("run", "--agent", "toy", "--session", "r", "--wait", "0s", "again").ends(5).stderr, "no worker works on it any more")
		require.Contains(t, b.run("show", "r").ends(0).stdout, "It is running. If no worker works on it any more, go on:\n  "+started.ResumeHint)

		b.start("s", "[{calls: [{call: deploy, with: {service: a, log: "+log+"}}, {call: deploy, with: {service: b, log: "+log+"}}]}, "+gate+"{say: ok}]", 10)
		m := b.run("submit", "s", "w2-1", "--approve", "--wait", "0s", "-o", "json").ends(0).manifest()
		require.Equal(t, session.OutcomePaused, m.Outcome, "its sibling is still open")
		m = b.run("submit", "s", "w2-2", "--approve", "--wait", "0s", "-o", "json").ends(0).manifest()
		require.Equal(t, session.OutcomeRunning, m.Outcome)
		m = b.run("submit", "s", "w2-2", "--approve", "--wait", "0s", "-o", "json").ends(0).manifest()
		require.Equal(t, session.OutcomeRunning, m.Outcome)
		b.run("submit", "s", "w2-2", "--reject", "--wait", "0s").ends(5)
		b.run("submit", "s", "w2-2", "--reject", "--no-resume").ends(5)
		b.run("resume", "s", "--wait", "50ms").ends(124)
		require.NoError(t, os.WriteFile(b.file("gate"), nil, 0o600))
	})
}

// TestMessagePastedAgain: after the end it says what became of it.
func TestMessagePastedAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{need: which region?}, {say: bye}]", 10)
		b.run("resume", "s", "eu-west-1").ends(0)
		again := b.run("resume", "s", "eu-west-1").ends(0)
		require.Equal(t, "bye\n", again.stdout)
		require.Regexp(t, `This message was taken in before, at .* \(entry 3\)`, again.stderr)
		require.NotContains(t, again.stderr, "decided", "a message decides nothing")
		b.run("resume", "s", "eu-west-2").ends(5)

		b.run("run", "--session", "s", "[{say: done}]").ends(0)
		b.run("resume", "s", "eu-west-1").ends(5) // it belongs to a task that is over
		b.run("resume", "s", "[{say: done}]").ends(5)
	})
}

// TestResumeBesideAnother: the second one stays with the session as the first does.
func TestResumeBesideAnother(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		gate := b.file("gate")
		b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "[{call: gate, with: {service: "+gate+"}}, {say: through}]").ends(0)
		results := make(chan result, 2)
		for range 2 {
			go func() { results <- b.run("resume", "s") }()
		}
		require.Eventually(t, func() bool { return exists(gate + ".reached") }, time.Minute, 5*time.Millisecond)
		third := make(chan result, 1)
		go func() { third <- b.run("resume", "s") }() // while a worker is at it for sure
		b.run("resume", "s", "--wait", "100ms").ends(124)
		require.NoError(t, os.WriteFile(gate, nil, 0o600))
		for _, r := range []result{<-results, <-results} {
			require.Equal(t, "through\n", r.ends(0).stdout)
		}
		if r := <-third; r.code != 5 { // it may have come after the end
			require.Equal(t, "through\n", r.ends(0).stdout)
		}
	})
}

// TestStoredWhileAnotherGoesOn has a worker go on with the session between the answer
// and the look at where it stands.
func TestStoredWhileAnotherGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	b.run("submit", "s", "w2-1", "--approve", "--no-resume").ends(0)
	b.run("resume", "s", "--wait", "0s").ends(0)
	m := b.run("submit", "s", "w2-1", "--approve", "--no-resume", "-o", "json").ends(0).manifest()
	require.Contains(t, []session.Outcome{session.OutcomeRunning, session.OutcomePaused}, m.Outcome)
	b.run("work").ends(0)
	m = b.run("submit", "s", "w2-1", "--approve", "--no-resume", "-o", "json").ends(0).manifest()
	require.Equal(t, session.OutcomeCompleted, m.Outcome)
}

func TestNoResume(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a"), 10)
		m := b.run("submit", "s", "w2-1", "--approve", "--no-resume", "-o", "json").ends(0).manifest()
		require.Equal(t, session.OutcomePaused, m.Outcome)
		if b.url == "" {
			b.run("work").ends(0)
		}
		require.Empty(t, read(t, log), "the answer is only stored")
		for _, command := range [][]string{{"inbox"}, {"show", "s"}} {
			out := b.run(command...).ends(0).stdout
			require.Regexp(t, `  w2-1  approval of deploy: approved, by ada, (just now|.* ago)`, out)
			require.Contains(t, out, b.words()+" resume s\n")
			require.NotContains(t, out, "0 approvals")
		}
		listed := b.run("inbox", "-o", "json").ends(0).stdout
		require.Contains(t, listed, `"stored": [`)
		require.Contains(t, listed, `"waitId": "w2-1"`)
		require.Contains(t, listed, `"held": true`)
		again := b.run("submit", "s", "w2-1", "--approve").ends(10)
		require.Contains(t, again.stderr, "Already settled")
		require.Contains(t, again.stderr, "The answer is stored.")
		require.Contains(t, again.stdout, "\nGo on: adjourn "+b.words()+" resume s\n", "it is only said to go on by resume, and the code says that it does not")
		b.run("submit", "s", "w2-1", "--approve", "--wait", "0s").ends(0)
		b.run("submit", "s", "w2-1", "--approve", "--no-resume").ends(0)
		require.Empty(t, read(t, log))
		require.Equal(t, "all done\n", b.run("resume", "s").ends(0).stdout)
		require.Equal(t, "a\n", read(t, log))
	})
}
