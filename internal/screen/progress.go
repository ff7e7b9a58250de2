package screen

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

// ShowProgress begins to tell people on a terminal what sessions are doing.
func (s *Screen) ShowProgress() {
	_, on := Terminal(s.Stderr)
	s.progress = &progress{out: s.Stderr, on: on && !s.Quiet, smart: s.smart(s.Stderr), width: Width(s.Stderr)}
}

// NoProgress ends that, for a command that tells it in its own words.
func (s *Screen) NoProgress() { s.progress.on = false }

// Entry says that one more entry of a session is written.
func (s *Screen) Entry(e runtime.Progress) { s.progress.entry(e) }

// Delta shows the end of what the model has written so far.
func (s *Screen) Delta(e llm.Event) { s.progress.delta(e) }

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
		p.show(fmt.Sprintf("step %d: %s …", e.Step, Calls(e.Calls)))
	case session.KindStepped, session.KindSuspended:
		if len(e.Calls) > 0 {
			_, _ = fmt.Fprintf(p.out, "step %d: %s\n", e.Step, Calls(e.Calls))
		}
		if len(e.Failed) > 0 {
			_, _ = fmt.Fprintf(p.out, "step %d: failed: %s\n", e.Step, Calls(e.Failed))
		}
		if e.Kind == session.KindStepped {
			p.show(fmt.Sprintf("step %d …", e.Step+1))
		}
	case session.KindDelayed:
		// The step that is put off is none of those that are done.
		_, _ = fmt.Fprintf(p.out, "step %d: put off, next try at %s: %s\n", e.Step+1, e.Until.Local().Format("15:04:05"), Short(e.Reason, 200))
	case session.KindStarted, session.KindResumed, session.KindRestored, session.KindForked:
		p.show("working …")
	case session.KindInterrupted, session.KindCancelled, session.KindCompleted, session.KindFailed, session.KindDeleted:
	}
}

func (p *progress) delta(e llm.Event) {
	if p == nil || !p.on || !p.smart {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case llm.EventTextDelta, llm.EventReasoningDelta:
		p.tail = lastRunes(p.tail+e.Text, max(p.width/2-2, 10)) // half: characters may be two columns wide
		p.show("… " + lastRunes(CleanLine(p.tail), max(p.width/2-2, 10)))
	case llm.EventStop:
		p.tail = ""
		p.show("working …") // a tool that is read only runs before the next entry comes
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

// Calls names the tools of a step, each once with how often it was called.
func Calls(names []string) string {
	if len(names) == 0 {
		return "thinking"
	}
	var order []string
	counts := map[string]int{}
	for _, name := range names {
		name = CleanLine(name)
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
