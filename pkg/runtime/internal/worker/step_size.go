package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// MaxStepBytes is the most that [Config].StepBytes may be: JSON writes a character
// in at most six, so that an entry, with its reply and what calls ask for, stays
// below what can be read again.
const MaxStepBytes = journal.MaxEntryBytes / 8

// Texts of errors are cut to maxErrorBytes, and to minErrorBytes where there is no
// room for more.
const (
	maxErrorBytes = 16 << 10
	minErrorBytes = 256
)

// sizeBudget is what the entry of a step may still take of what its calls bring. It is
// taken as soon as a tool has returned, so that what is over is let go of before it
// is written anywhere.
type sizeBudget struct{ left atomic.Int64 }

// reset makes room for so many bytes.
func (r *sizeBudget) reset(bytes int) { r.left.Store(int64(bytes)) }

// take reports whether there was room for so many bytes.
func (r *sizeBudget) take(bytes int) bool {
	if r.left.Add(-int64(bytes)) >= 0 {
		return true
	}
	r.left.Add(int64(bytes))
	return false
}

// checkReplySize refuses a reply that would leave too little room for what its calls
// bring, or ask.
func (inv *invocation) checkReplySize(reply llm.Message, ops []session.StateOp) error {
	size, most := reply.Size()+outcomeSize(nil, ops, nil), inv.cfg.StepBytes/4
	if size > most {
		return fmt.Errorf("the reply has %d bytes and is too large to keep: %d are the most", size, most)
	}
	inv.budget.take(size)
	return nil
}

// tooLargeResult is the result of a call that ran and brought more than there is room for.
func tooLargeResult(c session.Call, size, most int) llm.ToolResult {
	return engine.Result(c, llm.ResultError, fmt.Sprintf(
		"The tool ran, but its result has %d bytes with its changes of the state and was too large to keep: all calls of one step may return %d bytes. Do not repeat the call for that reason; ask for less if it only reads.",
		size, most))
}

// cutResult is [tooLargeResult] in place of a result that a call had.
func cutResult(r llm.ToolResult, size, most int) llm.ToolResult {
	return tooLargeResult(session.Call{ID: r.CallID, ProviderID: r.ProviderID, Name: r.Name}, size, most)
}

// outcomeSize is how many bytes of an entry a call's outcome takes.
func outcomeSize(output json.RawMessage, ops []session.StateOp, events []session.CustomEvent) int {
	size := len(output)
	for _, op := range ops {
		size += len(op.Key) + len(op.Value)
	}
	for _, e := range events {
		size += len(e.Name) + len(e.Data)
	}
	return size
}

// waitsSize is how many bytes of an entry waits take.
func waitsSize(waits []session.Wait) int {
	size := 0
	for _, w := range waits {
		size += len(w.Arguments) + len(w.Text)
		if w.Question == nil {
			continue
		}
		size += len(w.Question.Text)
		for _, c := range w.Question.Choices {
			size += len(c.ID) + len(c.Label) + len(c.Description)
		}
	}
	return size
}

// errorResult is the result of a call whose tool returned an error, which may be long.
func (inv *invocation) errorResult(c session.Call, text string) llm.ToolResult {
	text = cutText(text, maxErrorBytes)
	if !inv.budget.take(len(text)) {
		text = cutText(text, minErrorBytes)
	}
	return engine.Result(c, llm.ResultError, text)
}

func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// cutResults keeps the results of an entry within a step's bytes, whatever brought
// them together: several workers may each have finished calls with as much as fits.
// The largest goes first. Ledgers keep what they have.
func cutResults(out *engine.StepOutcome, bytes int) {
	size := outcomeSize(nil, out.StateOps, out.Events)
	for _, r := range out.Results {
		size += len(r.Output)
	}
	most := bytes + 2*minErrorBytes*len(out.Results) // what is kept of each in any case
	for size > most && len(out.Results) > 0 {
		largest := 0
		for i, r := range out.Results {
			if len(r.Output) > len(out.Results[largest].Output) {
				largest = i
			}
		}
		was := out.Results[largest]
		is := cutResult(was, len(was.Output), bytes)
		if len(is.Output) >= len(was.Output) {
			return // nothing large is left
		}
		out.Results[largest] = is
		size -= len(was.Output) - len(is.Output)
	}
}
