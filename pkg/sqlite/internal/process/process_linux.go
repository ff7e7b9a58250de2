package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// machine is the same for as long as this process lives.
var machine = sync.OnceValue(func() process { return readMachine("/proc") })

// readMachine says where this process runs. The namespace stays unknown where the
// pids listed are not those of this process's own namespace (a /proc of the host in
// a container), for then they are of no use. It includes that of the clock by which
// starts are told.
func readMachine(proc string) process {
	p := process{pid: os.Getpid()}
	if boot, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id")); err == nil {
		p.boot = strings.TrimSpace(string(boot))
	}
	if listed, err := os.Readlink(filepath.Join(proc, "self")); err != nil || listed != strconv.Itoa(p.pid) {
		return p
	}
	if pids, err := os.Readlink(filepath.Join(proc, "self/ns/pid")); err == nil {
		clock, _ := os.Readlink(filepath.Join(proc, "self/ns/time")) // there is none on old kernels
		p.namespace = namespaceID(pids) + "." + namespaceID(clock)
	}
	if s, err := readStat(p.pid); err == nil {
		p.start = s.start
	}
	return p
}

// namespaceID is the number in a link like pid:[4026531836].
func namespaceID(link string) string {
	_, id, _ := strings.Cut(link, ":")
	return strings.Trim(id, "[]")
}

func describeSelf(p *process) {
	m := machine()
	p.start, p.namespace, p.boot = m.start, m.namespace, m.boot
}

// processGone knows nothing of a process whose namespace is unknown, and as little
// of one that the kernel does not let this one see.
func processGone(p process) bool {
	if p.namespace == "" {
		return false
	}
	s, err := readStat(p.pid)
	if err != nil {
		// Not listed may also mean hidden, or no /proc at all: the kernel knows.
		unlisted := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
		return unlisted && errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH)
	}
	// Z and X have ended and only wait for their parent to notice.
	return s.state == 'Z' || s.state == 'X' || p.start != "" && s.start != "" && s.start != p.start
}

// Describe says which program a process runs and what it is doing.
func Describe(pid int) (name string, state State) {
	s, err := readStat(pid)
	switch {
	case err != nil:
		return "", Unknown
	case s.state == 'T' || s.state == 't':
		return s.name, Stopped
	case s.state == 'D':
		return s.name, Waiting
	}
	return s.name, Running
}

// stat is what /proc says of a process. Its start is in ticks since boot.
type stat struct {
	name, start string
	state       byte
}

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	// pid (name) state …: the name may hold anything, parentheses too.
	open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if open < 0 || end < open {
		return stat{}, errStat
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 20 {
		return stat{}, errStat
	}
	return stat{name: string(text[open+1 : end]), state: fields[0][0], start: fields[19]}, nil
}

var errStat = errors.New("unreadable stat of a process")
