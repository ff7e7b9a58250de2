// Package terminaltest runs a program at a terminal, and a person who reads there and types.
package terminaltest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// patience is how long a person waits for everything a program says.
const patience = 5 * time.Minute

// mark stands around the exit code. No program may print it at a terminal.
const mark = "\x1e"

// leader runs the program, says how it ended, and stays: when a terminal's leader
// goes, the kernel hangs up and throws away what nobody has read yet, which on a
// busy machine may be the last words of the program.
const leader = `trap : INT TERM
"$@"
printf '` + mark + `%d` + mark + `' $?
exec cat >/dev/null`

// Person sits at a terminal in which one program runs. One goroutine may use it.
type Person struct {
	t      *testing.T
	leader *exec.Cmd
	tty    *os.File
	unread string
	all    string
}

// Program is what to run, and where.
type Program struct {
	// Args begin with the program's path.
	Args []string
	// Dir is the working folder; the test's own by default.
	Dir string
	// Env is all of its environment.
	Env []string
	// Rows and Columns of the terminal.
	Rows, Columns uint16
}

// Sit starts a program at a terminal.
func Sit(t *testing.T, program Program) *Person {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", leader, "sh"}, program.Args...)...)
	cmd.Dir, cmd.Env = program.Dir, program.Env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: program.Rows, Cols: program.Columns})
	require.NoError(t, err)
	p := &Person{t: t, leader: cmd, tty: tty}
	t.Cleanup(func() {
		_ = p.tty.Close() // ends whatever still runs there
		_ = p.leader.Wait()
	})
	require.NoError(t, tty.SetReadDeadline(time.Now().Add(patience)))
	return p
}

// All returns everything that was read so far, as a terminal gets it.
func (p *Person) All() string { return p.all }

// Sees waits until something is printed, after what was seen before.
func (p *Person) Sees(text string) *Person {
	p.t.Helper()
	for {
		if _, after, found := strings.Cut(p.unread, text); found {
			p.unread = after
			return p
		}
		require.NotContains(p.t, p.all, mark, "the program left; waiting for %q", text)
		p.read("waiting for " + strconv.Quote(text))
	}
}

// Types types, Ctrl-C and its like included.
func (p *Person) Types(text string) *Person {
	p.t.Helper()
	_, err := p.tty.WriteString(text)
	require.NoError(p.t, err)
	return p
}

// Signal sends the program a signal, as Ctrl-C does.
func (p *Person) Signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(-p.leader.Process.Pid, s))
}

// Kill kills the program, with all that it runs at the terminal, and waits until they are gone.
func (p *Person) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	buffer := make([]byte, 4096)
	for err := error(nil); err == nil; { // the terminal can be read until nobody has it open any more
		_, err = p.tty.Read(buffer)
		require.NotErrorIs(p.t, err, os.ErrDeadlineExceeded)
	}
}

// Leaves waits until the program has ended, and returns its exit code.
func (p *Person) Leaves() int {
	p.t.Helper()
	for strings.Count(p.all, mark) < 2 {
		p.read("waiting for the end")
	}
	said, code, _ := strings.Cut(p.all, mark)
	p.all = said
	n, err := strconv.Atoi(strings.TrimSuffix(code, mark))
	require.NoError(p.t, err)
	return n
}

func (p *Person) read(why string) {
	p.t.Helper()
	buffer := make([]byte, 4096)
	n, err := p.tty.Read(buffer)
	p.unread += string(buffer[:n])
	p.all += string(buffer[:n])
	require.NoError(p.t, err, "%s, saw: %s", why, p.all)
}
