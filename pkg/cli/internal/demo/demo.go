// Package demo tells the whole story of a session with an agent of ours.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
)

// Agent does the demo's work.
const Agent = "janitor"

// demoSession is the id the demo's session gets, so that its commands can be read.
const demoSession = "demo"

// sample is the folder the demo cleans: three files twice, one once.
var sample = []struct{ name, text string }{
	{"photos/sunrise.jpg", "pretend these are the bytes of a sunrise\n"},
	{"photos/sunrise copy.jpg", "pretend these are the bytes of a sunrise\n"},
	{"photos/mountain.jpg", "pretend these are the bytes of a mountain\n"},
	{"notes.txt", "buy milk\n"},
	{"old/notes (1).txt", "buy milk\n"},
}

// story tells the demo and runs its commands.
type story struct {
	*screen.Screen
	*place.Place
	dir    string // everything the demo makes
	folder string // what the agent cleans
	data   string
	last   report.Manifest
}

// Run makes the sample in a folder, a temporary one if dir is empty, and tells the story.
func Run(ctx context.Context, show *screen.Screen, where *place.Place, dir string) error {
	s, err := newStory(show, where, dir)
	if err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{s.begin, s.start, s.restIn, s.approve, s.finish, s.again} {
		if err := chapter(ctx); err != nil {
			return fmt.Errorf("demo in %s: %w", s.dir, err)
		}
	}
	s.next()
	return nil
}

func newStory(show *screen.Screen, where *place.Place, dir string) (*story, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "adjourn-demo-")
	} else {
		err = emptyFolder(dir)
	}
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	s := &story{Screen: show, Place: where, dir: dir, folder: filepath.Join(dir, "sample"), data: filepath.Join(dir, "adjourn.db")}
	s.UseData(s.data)
	return s, s.fill()
}

func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err == nil && len(there) > 0 {
		return exit.Usagef("--dir %s is not empty; the demo deletes files, so it makes its own folder", dir)
	}
	return err
}

func (s *story) fill() error {
	for _, f := range sample {
		path := filepath.Join(s.folder, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) begin(context.Context) error {
	s.chapter("A folder with duplicates")
	s.tell("Here is a sample folder. Some files are there twice:")
	return s.list()
}

func (s *story) start(ctx context.Context) error {
	s.chapter("1. An agent works until it needs a person")
	s.tell("The agent %q looks for duplicates and asks before it deletes anything.", Agent)
	if err := s.process(ctx, exit.Paused, s.Command("run", "--agent", Agent, "--session", demoSession, s.folder)); err != nil {
		return err
	}
	s.tell("The exit code is %d: paused. That process has ended; while you think, nothing runs and", exit.Paused)
	s.tell("nothing waits in memory. All there is, is %s.", s.data)
	return nil
}

func (s *story) restIn(ctx context.Context) error {
	s.chapter("2. Nothing was deleted, and nothing was forgotten")
	if err := s.list(); err != nil {
		return err
	}
	s.tell("Any process, today or next month, can ask what waits for a person:")
	if err := s.process(ctx, exit.Completed, s.Command("inbox")); err != nil {
		return err
	}
	return s.readPause()
}

// readPause takes the manifest from the file the paused process left, as a script would.
func (s *story) readPause() error {
	text, err := os.ReadFile(filepath.Join(s.dir, place.PauseFile))
	if err != nil {
		return fmt.Errorf("the paused process should have left a manifest: %w", err)
	}
	if err := json.Unmarshal(text, &s.last); err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	if s.last.ResumeHint == "" {
		return errors.New("the manifest has no resume_hint")
	}
	s.tell("For scripts the same is in %s, which is what", filepath.Join(s.dir, place.PauseFile))
	s.tell("--output json prints. Its resume_hint is a command that can be pasted as it is.")
	return nil
}

func (s *story) approve(ctx context.Context) error {
	s.chapter("3. Another process brings the answer")
	s.tell("Pasted as it is, the hint approves what was shown, at the checkpoint where it was shown:")
	return s.process(ctx, exit.Completed, s.last.ResumeHint)
}

func (s *story) finish(ctx context.Context) error {
	s.chapter("4. The agent went on and finished")
	s.tell("The copies are gone, the originals are not:")
	if err := s.list(); err != nil {
		return err
	}
	s.tell("The journal has all of it, the wait included:")
	return s.process(ctx, exit.Completed, s.Command("show", demoSession))
}

func (s *story) again(ctx context.Context) error {
	s.chapter("5. The same answer twice does no harm")
	return s.process(ctx, exit.Completed, s.last.ResumeHint)
}

// next says what to try, with commands that work.
func (s *story) next() {
	s.chapter("What to try next")
	s.tell("Decide yourself: in this terminal you are asked, y, n, e or ?. New duplicates first:")
	s.command("cp " + place.Quote(filepath.Join(s.folder, "notes.txt")) + " " + place.Quote(filepath.Join(s.folder, "notes copy.txt")))
	s.command(s.Command("run", "--agent", Agent, s.folder))
	s.tell("Try every feature without a model: the agent \"lab\" plays a script.")
	s.command(s.Command("run", "--agent", "lab", "[{call: pick_color}, {say: done}]"))
	s.tell("Kill this one half-way (it takes 20 seconds; kill -9 is fine), then let the other command finish it.")
	s.tell("%s has 20 lines in the end: none is lost, none is written twice.", filepath.Join(s.dir, "adjourn-lab", "lines.txt"))
	s.command(s.Command("run", "--agent", "lab", "[{repeat: 20, calls: [{call: append_once, with: {path: lines.txt, text: x}}, {call: sleep, with: {seconds: 1}}]}, {say: done}]"))
	s.command(s.Command("work"))
	s.tell("With a real model, the same tools and the same pause:")
	s.command("ADJOURN_MODEL=openai:gpt-5-mini " + s.Command("run", "--agent", Agent, s.folder))
	s.tell("The sample and its data stay in %s; remove the folder when you are done.", s.dir)
}

func (s *story) chapter(title string) {
	s.Say("\n%s\n", s.Bold(s.Stdout, "== "+title))
}

func (s *story) tell(format string, args ...any) { s.Say(format, args...) }
func (s *story) command(line string)             { s.Say("    %s", line) }

// list shows the files of the sample.
func (s *story) list() error {
	return filepath.WalkDir(s.folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		s.Say("    %s", name)
		return err
	})
}

// process runs a command line exactly as it is shown, in a process of its own
// without a terminal, and shows what it prints.
func (s *story) process(ctx context.Context, want int, line string) error {
	s.Say("\n  $ %s", line)
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env = append(os.Environ(), "ADJOURN_MODEL=", "ADJOURN_LOG=", "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	for text := range strings.Lines(strings.TrimSpace(out.String())) {
		s.Say("  > %s", screen.Clean(strings.TrimRight(text, "\n")))
	}
	s.Say("")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		return fmt.Errorf("exit code %d instead of %d of: %s", code, want, line)
	}
	return nil
}
