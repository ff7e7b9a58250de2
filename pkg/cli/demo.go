package cli

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

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
)

// demoAgent does the demo's work.
const demoAgent = "janitor"

// demoSession is the id the demo's session gets, so that its commands can be read.
const demoSession = "demo"

func (c *cli) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Tell the whole story in two minutes: run, pause, approve from another process, finish",
		Long: `Make a sample folder with duplicate files and let the agent janitor clean it up.
Every command runs as a process of its own and nothing needs to be typed. The
folder stays, so that you can go on trying.`,
		Args: cobra.NoArgs,
		RunE: c.here("demo", func(ctx context.Context, _ []string) error {
			return c.demo(ctx, dir)
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "make the sample in this `folder`, which must be empty or not exist (default: a temporary one)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

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
	c      *cli
	dir    string // everything the demo makes
	folder string // what the agent cleans
	data   string
	last   report.Manifest
}

func (c *cli) demo(ctx context.Context, dir string) error {
	s, err := newStory(c, dir)
	if err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{s.begin, s.run, s.restIn, s.approve, s.finish, s.again} {
		if err := chapter(ctx); err != nil {
			return fmt.Errorf("demo in %s: %w", s.dir, err)
		}
	}
	s.next()
	return nil
}

func newStory(c *cli, dir string) (*story, error) {
	if err := c.checkAgent(demoAgent); err != nil {
		return nil, err
	}
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
	s := &story{c: c, dir: dir, folder: filepath.Join(dir, "sample"), data: filepath.Join(dir, "adjourn.db")}
	c.UseData(s.data)
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

func (s *story) run(ctx context.Context) error {
	s.chapter("1. An agent works until it needs a person")
	s.tell("The agent %q looks for duplicates and asks before it deletes anything.", demoAgent)
	if err := s.process(ctx, exit.Paused, s.c.Command("run", "--agent", demoAgent, "--session", demoSession, s.folder)); err != nil {
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
	if err := s.process(ctx, exit.Completed, s.c.Command("inbox")); err != nil {
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
	return s.process(ctx, exit.Completed, s.c.Command("show", demoSession))
}

func (s *story) again(ctx context.Context) error {
	s.chapter("5. The same answer twice does no harm")
	return s.process(ctx, exit.Completed, s.last.ResumeHint)
}

// next says what to try, with commands that work.
func (s *story) next() {
	c := s.c
	s.chapter("What to try next")
	s.tell("Decide yourself: in this terminal you are asked, y, n, e or ?. New duplicates first:")
	s.command("cp " + place.Quote(filepath.Join(s.folder, "notes.txt")) + " " + place.Quote(filepath.Join(s.folder, "notes copy.txt")))
	s.command(c.Command("run", "--agent", demoAgent, s.folder))
	s.tell("Try every feature without a model: the agent \"lab\" plays a script.")
	s.command(c.Command("run", "--agent", "lab", "[{call: pick_color}, {say: done}]"))
	s.tell("Kill this one half-way (it takes 20 seconds; kill -9 is fine), then let the other command finish it.")
	s.tell("%s has 20 lines in the end: none is lost, none is written twice.", filepath.Join(s.dir, "adjourn-lab", "lines.txt"))
	s.command(c.Command("run", "--agent", "lab", "[{repeat: 20, calls: [{call: append_once, with: {path: lines.txt, text: x}}, {call: sleep, with: {seconds: 1}}]}, {say: done}]"))
	s.command(c.Command("work"))
	s.tell("With a real model, the same tools and the same pause:")
	s.command("ADJOURN_MODEL=openai:gpt-5-mini " + c.Command("run", "--agent", demoAgent, s.folder))
	s.tell("The sample and its data stay in %s; remove the folder when you are done.", s.dir)
}

func (s *story) chapter(title string) {
	s.c.Say("\n%s\n", s.c.Bold(s.c.Stdout, "== "+title))
}

func (s *story) tell(format string, args ...any) { s.c.Say(format, args...) }
func (s *story) command(line string)             { s.c.Say("    %s", line) }

// list shows the files of the sample.
func (s *story) list() error {
	return filepath.WalkDir(s.folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		s.c.Say("    %s", name)
		return err
	})
}

// process runs a command line exactly as it is shown, in a process of its own
// without a terminal, and shows what it prints.
func (s *story) process(ctx context.Context, want int, line string) error {
	s.c.Say("\n  $ %s", line)
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env = append(os.Environ(), "ADJOURN_MODEL=", "ADJOURN_LOG=", "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	for text := range strings.Lines(strings.TrimSpace(out.String())) {
		s.c.Say("  > %s", screen.Clean(strings.TrimRight(text, "\n")))
	}
	s.c.Say("")
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
