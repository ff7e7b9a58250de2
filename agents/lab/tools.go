package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/tool"
)

// Tools returns the lab's tools.
func Tools() []tool.Tool {
	return append(plainTools(), peopleTools()...)
}

// longest is how long sleep sleeps at most.
const longest = 15 * time.Minute

// EchoIn says what to answer.
type EchoIn struct {
	Text string `json:"text,omitempty" jsonschema:"the answer"`
	Size int    `json:"size,omitempty" jsonschema:"instead of text: answer with so many bytes of made-up text"`
}

// SleepIn says how long.
type SleepIn struct {
	Seconds float64 `json:"seconds" jsonschema:"how long to sleep; fractions are fine"`
}

// LineIn is one line for a file.
type LineIn struct {
	Path string `json:"path" jsonschema:"the file, below the lab's folder; it is made if need be"`
	Text string `json:"text" jsonschema:"the line, without a line break"`
}

// LineOut says where the line is.
type LineOut struct {
	Path string `json:"path"`
	// Key that owns the line, of append_once.
	Key string `json:"key,omitempty"`
}

// NoteIn is a note for the session's state.
type NoteIn struct {
	Text string `json:"text" jsonschema:"the note"`
	Key  string `json:"key,omitempty" jsonschema:"the key of the state; notes for add_note and note for set_note if left out"`
}

// NoteOut says what was changed.
type NoteOut struct {
	Key string `json:"key"`
	// Count of the notes this call sees, its own included.
	Count int `json:"count,omitempty"`
}

// FaultIn says how to fail.
type FaultIn struct {
	Text string `json:"text,omitempty" jsonschema:"what to say; something is said anyway"`
}

func plainTools() []tool.Tool {
	return []tool.Tool{
		tool.Define(tool.Spec[EchoIn]{
			Name: "echo", Description: "Answer with the text given, or with text of a size.", Effect: tool.ReadOnly,
			Properties: map[string]json.RawMessage{
				"size": fmt.Appendf(nil, `{"minimum": 0, "maximum": %d}`, tool.MaxResultBytes-len(`""`)),
			},
		}, echo),
		tool.Define(tool.Spec[SleepIn]{
			Name: "sleep", Description: "Do nothing for some seconds.", Effect: tool.ReadOnly, Timeout: longest + time.Minute,
			Properties: map[string]json.RawMessage{
				"seconds": fmt.Appendf(nil, `{"minimum": 0, "maximum": %d}`, longest/time.Second),
			},
		}, sleep),
		tool.Define(tool.Spec[LineIn]{
			Name: "append_line", Description: "Append a line to a file of the lab's folder. A side effect: it happens at most once for each call.",
			Effect: tool.SideEffect,
		}, func(ctx context.Context, c *tool.Call, in LineIn) (LineOut, error) {
			if err := write(ctx, c, in.Path, in.Text); err != nil {
				return LineOut{}, fmt.Errorf("append_line: %w", err)
			}
			return LineOut{Path: in.Path}, nil
		}),
		tool.Define(tool.Spec[LineIn]{
			Name: "append_once", Description: "Append a line to a file of the lab's folder, once for each call however often the call runs. " +
				"A file beside it, with .keys added to its name, remembers which call owns which line.",
			Effect: tool.Idempotent,
		}, func(ctx context.Context, c *tool.Call, in LineIn) (LineOut, error) {
			key := c.IdempotencyKey()
			if err := writeOnce(ctx, c, in.Path, in.Text); err != nil {
				return LineOut{}, fmt.Errorf("append_once: %w", err)
			}
			return LineOut{Path: in.Path, Key: key}, nil
		}),
		tool.Define(tool.Spec[NoteIn]{
			Name: "add_note", Description: "Add a note to a list in the session's state.", Effect: tool.ReadOnly,
		}, addNote),
		tool.Define(tool.Spec[NoteIn]{
			Name: "set_note", Description: "Replace a note in the session's state.", Effect: tool.ReadOnly,
		}, func(_ context.Context, c *tool.Call, in NoteIn) (NoteOut, error) {
			key := or(in.Key, "note")
			return NoteOut{Key: key}, c.Replace(key, in.Text)
		}),
		tool.Define(tool.Spec[FaultIn]{
			Name: "boom", Description: "Panic.", Effect: tool.ReadOnly,
		}, func(_ context.Context, _ *tool.Call, in FaultIn) (struct{}, error) {
			panic(or(in.Text, "boom"))
		}),
		tool.Define(tool.Spec[FaultIn]{
			Name: "fault", Description: "Fail with an error.", Effect: tool.ReadOnly,
		}, func(_ context.Context, _ *tool.Call, in FaultIn) (struct{}, error) {
			return struct{}{}, errors.New(or(in.Text, "this tool always fails"))
		}),
		// The task returns exactly what came in, numbers digit for digit.
		tool.Define(tool.Spec[map[string]json.RawMessage]{
			Name: "finish", Description: "End the task with a structured result: the arguments, whatever they are.",
			Effect: tool.ReadOnly, Finish: true,
		}, func(_ context.Context, _ *tool.Call, in map[string]json.RawMessage) (map[string]json.RawMessage, error) {
			return in, nil
		}),
	}
}

func echo(_ context.Context, _ *tool.Call, in EchoIn) (string, error) {
	if in.Text != "" && in.Size > 0 {
		return "", errors.New("echo: give text or size, not both")
	}
	if in.Size > 0 {
		return madeUp(in.Size), nil
	}
	return in.Text, nil
}

// madeUp returns text of so many bytes, the same every time. Its words do not repeat,
// so that the journal's compression cannot make it small.
func madeUp(size int) string {
	const letters = "etaoinsrhldcumfp" // a power of two of them
	text := make([]byte, size)
	state := uint64(size)
	left := 0 // letters of the word
	for i := range text {
		// A linear congruential generator (Knuth's MMIX), whose high bits are good.
		state = state*6364136223846793005 + 1442695040888963407
		if left == 0 && i > 0 && i < size-1 {
			text[i], left = ' ', 2+int(state>>61)
			continue
		}
		text[i], left = letters[state>>60], max(left-1, 0)
	}
	return string(text)
}

func sleep(ctx context.Context, _ *tool.Call, in SleepIn) (string, error) {
	d := time.Duration(in.Seconds * float64(time.Second))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("sleep: woken up: %w", context.Cause(ctx))
	case <-timer.C:
		return fmt.Sprintf("slept for %s", d), nil
	}
}

func addNote(_ context.Context, c *tool.Call, in NoteIn) (NoteOut, error) {
	key := or(in.Key, "notes")
	if err := c.Append(key, in.Text); err != nil {
		return NoteOut{}, err
	}
	notes, _, err := tool.State[[]json.RawMessage](c, key)
	return NoteOut{Key: key, Count: len(notes)}, err
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
