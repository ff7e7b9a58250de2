package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// progress tells people on a terminal what a session is doing: a line for each
// entry, and the tail of the text the model is writing on a line of its own.
// Nil, or not on, it says nothing.
type progress struct {
	mu     sync.Mutex
	out    io.Writer
	on     bool
	smart  bool
	width  int
	tail   string
	status string // what the bottom line shows; "" when there is none
}

func newProgress(c *cli) *progress {
	_, on := terminal(c.Stderr)
	return &progress{out: c.Stderr, on: on && !c.quiet, smart: c.smart(c.Stderr), width: width(c.Stderr)}
}

// pause takes the bottom line away while something else is printed.
func (p *progress) pause(work func()) {
	if p == nil {
		work()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hide()
	work()
}

func (p *progress) hide() {
	if p.status != "" {
		_, _ = io.WriteString(p.out, "\r\x1b[2K")
		p.status = ""
	}
}

func (p *progress) show(status string) {
	if !p.on || !p.smart {
		return
	}
	p.hide()
	p.status = status
	_, _ = io.WriteString(p.out, status)
}

// entry says that one more entry is written.
func (p *progress) entry(e runtime.Progress) {
	if p == nil || !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tail = ""
	p.hide()
	switch e.Kind {
	case session.KindReplied:
		p.show(fmt.Sprintf("step %d: %s …", e.Step, calls(e.Calls)))
	case session.KindStepped, session.KindSuspended:
		if len(e.Calls) > 0 {
			_, _ = fmt.Fprintf(p.out, "step %d: %s\n", e.Step, calls(e.Calls))
		}
		if e.Kind == session.KindStepped {
			p.show(fmt.Sprintf("step %d …", e.Step+1))
		}
	case session.KindDelayed:
		_, _ = fmt.Fprintf(p.out, "step %d: the model did not answer; trying again later. %s\n", e.Step, short(e.Text, 120))
	case session.KindStarted, session.KindResumed, session.KindRestored, session.KindForked:
		p.show("working …")
	case session.KindInterrupted, session.KindCancelled, session.KindCompleted, session.KindFailed, session.KindDeleted:
	}
}

// delta shows the end of what the model has written so far.
func (p *progress) delta(e llm.Event) {
	if p == nil || !p.on || !p.smart {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case llm.EventTextDelta, llm.EventReasoningDelta:
		p.tail = lastRunes(p.tail+e.Text, max(p.width/2-2, 10)) // half: characters may be two columns wide
		p.show("… " + lastRunes(cleanLine(p.tail), max(p.width/2-2, 10)))
	case llm.EventStop:
		p.tail = ""
		p.hide()
	case llm.EventToolStart, llm.EventToolArgDelta, llm.EventOpaque, llm.EventUsage:
	}
}

func lastRunes(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[len(runes)-n:])
}

// calls names the tools of a step, each once with how often it was called.
func calls(names []string) string {
	if len(names) == 0 {
		return "thinking"
	}
	var order []string
	counts := map[string]int{}
	for _, name := range names {
		name = cleanLine(name)
		if counts[name] == 0 {
			order = append(order, name)
		}
		counts[name]++
	}
	for i, name := range order {
		if n := counts[name]; n > 1 {
			order[i] = fmt.Sprintf("%s ×%d", name, n)
		}
	}
	return strings.Join(order, ", ")
}
