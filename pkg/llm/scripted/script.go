package scripted

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// MaxRepeat is the largest number of times an item can be repeated.
const MaxRepeat = 1_000_000

// MaxStream is how long saying a text may take.
const MaxStream = 15 * time.Minute

// MaxText is the size of the longest script, in bytes.
const MaxText = 1 << 20

// CodeInvalidScript is the code of every [*ScriptError].
const CodeInvalidScript = "invalid_script"

// ScriptError says what is wrong with a script, where, and what to do.
type ScriptError struct {
	// Code is CodeInvalidScript.
	Code string
	// Item is the number of the item, from 1; 0 when it is the list that is wrong.
	Item int
	// Line of the script, from 1; 0 when unknown.
	Line int
	// Message says what is wrong and what to write instead.
	Message string
	// Cause is what the YAML reader said, if it was the one to refuse.
	Cause error
}

// Error says item, line and message.
func (e *ScriptError) Error() string {
	var place []string
	if e.Item > 0 {
		place = append(place, fmt.Sprintf("item %d", e.Item))
	}
	if e.Line > 0 {
		place = append(place, fmt.Sprintf("line %d", e.Line))
	}
	if len(place) == 0 {
		return "script: " + e.Message
	}
	return "script: " + strings.Join(place, ", ") + ": " + e.Message
}

// Unwrap returns the cause.
func (e *ScriptError) Unwrap() error { return e.Cause }

// Item is one entry of a script: what the model says in one reply, or in
// several of the same kind. One of Calls, Stream, Fail, Need and Say is set.
type Item struct {
	// Number of the item in its script, from 1, and the line it starts at.
	Number int
	Line   int
	// Repeat is how many replies the item stands for; 1 or more.
	Repeat int

	// Think is reasoning, before the rest.
	Think string
	// Text comes before the calls.
	Text string
	// Calls are made in one reply; their arguments are JSON objects.
	Calls []llm.ToolCall
	// Stream is text in deltas of a few words, one Every so often.
	Stream string
	Every  time.Duration
	// Fail is the class of the error; After is what it says as retry-after.
	Fail  llm.ErrorClass
	After time.Duration
	// Need is a question to a person.
	Need string
	// Say is text that ends the turn.
	Say string
}

// Script is a list of items. The zero value is an empty script. It is safe for
// concurrent use: nothing changes it.
type Script struct {
	items []Item
	// ends[i] is how many replies items[0] to items[i] stand for, so that
	// repeats cost nothing to hold and a search to find.
	ends []int
}

func newScript(items []Item) Script {
	s := Script{items: items, ends: make([]int, len(items))}
	for i := range items {
		s.ends[i] = s.before(i) + items[i].Repeat
	}
	return s
}

func (s Script) before(i int) int {
	if i == 0 {
		return 0
	}
	return s.ends[i-1]
}

// Len returns how many replies the script holds, repeats counted.
func (s Script) Len() int { return s.before(len(s.ends)) }

// Items returns how many items the script has, repeats not counted.
func (s Script) Items() int { return len(s.items) }

// Reply returns the item that the k-th reply (from 0) says. It is false past
// the end.
func (s Script) Reply(k int) (Item, bool) {
	if k < 0 || k >= s.Len() {
		return Item{}, false
	}
	return s.items[sort.SearchInts(s.ends, k+1)], true
}
