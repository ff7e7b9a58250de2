//go:build linux

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
)

// patience is how long a process may take before a trial gives up on it.
const patience = 2 * time.Minute

// world is one trial: a folder with a data file, a script that writes to files
// beside it, and the processes that work on it. Its methods stop the trial's
// goroutine when something is wrong, as those of testing.T do.
type world struct {
	labtest.Trial
	program string
	env     []string
	script  *labtest.Script
	rng     *rand.Rand
	ahead   time.Duration   // of the clock of its processes, once they are told
	clocks  []time.Duration // how far the clock of each process may be ahead, one of them by chance
	// shown is the checkpoint at which the session paused, as the first command that
	// decides found it; one that is given again names the same.
	shown string
}

const sessionID = "s1"

// try runs one trial in a folder of its own, which is kept if it fails.
func try(t *testing.T, w *world, trial func(w *world)) {
	t.Helper()
	w.Try(t, func() {
		w.script.Prepare(w.path("adjourn-lab")) // the lab's folder beside the data
		require.NoError(w, os.WriteFile(w.path("script.yaml"), []byte(w.script.Text()), 0o600))
		trial(w)
	}, w.report)
}

// all runs trials side by side.
func all(t *testing.T, parallel int, worlds []*world, trial func(w *world)) {
	t.Helper()
	var wg sync.WaitGroup
	room := make(chan struct{}, parallel)
	for _, w := range worlds {
		if t.Failed() {
			break // one report is read, twenty are not
		}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			try(t, w, trial)
		})
	}
	wg.Wait()
}

func (w *world) path(name string) string { return filepath.Join(w.Dir, name) }

// report tells all that is known of a trial.
func (w *world) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- what was done\n%s\n%s", w.Notes(""), w.script.Report())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	show := exec.CommandContext(ctx, w.program, "show", sessionID, "--full")
	show.Env = w.environment()
	out, err := show.CombinedOutput()
	fmt.Fprintf(&b, "-- adjourn show %s (%v)\n%s", sessionID, err, out)
	return b.String()
}

func (w *world) environment(extra ...string) []string {
	env := append(os.Environ(), "ADJOURN_DATA="+w.path("adjourn.db"), "ADJOURN_MODEL=", "ADJOURN_AGENT=", "ADJOURN_LOG=error")
	return append(append(env, w.env...), extra...)
}

// process is one command under way, in a process group of its own.
type process struct {
	w              *world
	args           string
	cmd            *exec.Cmd
	stdout, stderr *os.File
	began          time.Time
	ended          chan struct{}
}

// result is how a command ended.
type result struct {
	args   string
	code   int // -1 when it was killed
	stdout string
	stderr string
	took   time.Duration
}

func (r result) killed() bool { return r.code == -1 }

// manifest reads what the command printed with --output json.
func (w *world) manifest(r result) manifest {
	var m manifest
	require.NoError(w, json.Unmarshal([]byte(r.stdout), &m), "%s printed %q", r.args, r.stdout)
	return m
}

type manifest struct {
	Outcome   string `json:"outcome"`
	SessionID string `json:"session_id"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Effects struct {
			Digest string `json:"digest"`
		} `json:"effects"`
	} `json:"error"`
}

// shownCheckpoint stands in a command for the checkpoint the user was shown.
const shownCheckpoint = "CHECKPOINT"

// typed returns the words of a command as the user types them.
func (w *world) typed(args []string) []string {
	i := slices.Index(args, shownCheckpoint)
	if i < 0 {
		return args
	}
	if w.shown == "" {
		db := w.open()
		defer db.close()
		if s := db.records().Fold(w); s != nil {
			w.shown = s.Checkpoint().String()
		}
	}
	args = slices.Clone(args)
	args[i] = w.shown
	return args
}

// start starts a command.
func (w *world) start(env []string, args ...string) *process {
	args = w.typed(args)
	stdout, err := os.CreateTemp(w.Dir, "stdout-")
	require.NoError(w, err)
	stderr, err := os.CreateTemp(w.Dir, "stderr-")
	require.NoError(w, err)
	p := &process{w: w, args: strings.Join(args, " "), stdout: stdout, stderr: stderr, ended: make(chan struct{})}
	if len(w.clocks) > 0 {
		ahead := w.clocks[w.rng.IntN(len(w.clocks))]
		w.Note("    by a clock %s ahead:", ahead)
		env = append(env, trapAhead+"="+ahead.String())
	}
	p.cmd = exec.CommandContext(context.Background(), w.program, args...)
	p.cmd.Env, p.cmd.Dir = w.environment(env...), w.Dir
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr // files: nothing of ours runs for it
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.began = time.Now()
	require.NoError(w, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its state says all
	}()
	return p
}

// signal sends a signal to the whole group; a group that is gone gets none.
func (p *process) signal(s syscall.Signal) {
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil {
		require.ErrorIs(p.w, err, syscall.ESRCH)
	}
}

// wait waits for the end of the process, and checks that nothing of it is left.
func (p *process) wait() result {
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGQUIT) // for its goroutines
		<-p.ended
		p.w.Errorf("%s did not end within %s", p.args, patience)
	}
	r := result{args: p.args, code: p.cmd.ProcessState.ExitCode(), took: time.Since(p.began)}
	for out, into := range map[*os.File]*string{p.stdout: &r.stdout, p.stderr: &r.stderr} {
		text, err := os.ReadFile(out.Name())
		require.NoError(p.w, err)
		require.NoError(p.w, out.Close())
		*into = string(bytes.TrimSpace(text))
	}
	p.w.Note("%s -> %d after %s%s", r.args, r.code, r.took.Round(time.Millisecond), indent(r.stderr))
	p.w.wantNone(p.cmd.Process.Pid)
	if p.w.Failed() {
		p.w.FailNow()
	}
	return r
}

func indent(text string) string {
	if text == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// wantNone waits until a process group has no processes.
func (w *world) wantNone(group int) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if err := syscall.Kill(-group, 0); err != nil {
			require.ErrorIs(w, err, syscall.ESRCH)
			return
		}
		if time.Now().After(deadline) {
			w.Errorf("processes of group %d are left behind", group)
			return
		}
	}
}

// run runs a command to its end.
func (w *world) run(args ...string) result { return w.start(nil, args...).wait() }

// runKilled runs a command and kills it after a delay, unless it has ended before.
func (w *world) runKilled(delay time.Duration, args ...string) result {
	p := w.start(nil, args...)
	select {
	case <-time.After(delay):
		p.signal(syscall.SIGKILL)
	case <-p.ended:
	}
	r := p.wait()
	if r.killed() {
		w.Note("    killed after %s", delay)
		w.Hit()
	}
	return r
}

// startTrapped starts a command that sends itself a signal at a place.
func (w *world) startTrapped(at string, how string, args ...string) *process {
	w.Note("    SIG%s at %s:", how, at)
	return w.start([]string{trapAt + "=" + at, trapHow + "=" + how}, args...)
}

// stopped waits until a process is stopped, and reports whether it is: it may end instead.
func (p *process) stopped() bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.ended:
			return false
		default:
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			continue // it may be about to end
		}
		if _, rest, found := strings.Cut(string(stat), ") "); found && strings.HasPrefix(rest, "T") {
			return true
		}
	}
	return false
}
