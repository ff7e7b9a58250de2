package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// machine is the same for as long as this process lives.
var machine = sync.OnceValue(func() process {
	var p process
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		p.boot = strings.TrimSpace(string(boot))
	}
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		p.namespace = strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
	}
	p.start, _, _ = processStat(os.Getpid())
	return p
})

func describeSelf(p *process) {
	m := machine()
	p.start, p.namespace, p.boot = m.start, m.namespace, m.boot
}

func processGone(p process) bool {
	start, state, err := processStat(p.pid)
	if err != nil {
		// Not listed may also mean hidden, or no /proc at all: the kernel knows.
		unlisted := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
		return unlisted && errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH)
	}
	// Z and X have ended and only wait for their parent to notice.
	return state == 'Z' || state == 'X' || p.start != "" && start != "" && start != p.start
}

// processStat reads when a process started (in ticks since boot) and its state.
func processStat(pid int) (start string, state byte, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, err
	}
	// pid (name) state …: the name may hold anything, parentheses too.
	_, rest, ok := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", 0, errors.New("unreadable stat of a process")
	}
	return fields[19], fields[0][0], nil
}
