// Package labtest checks that sessions of the lab are whole after any fault.
//
// A trial gives the lab a [Script] and disturbs it: processes are killed, frozen,
// raced. When the session has ended, [Ended] compares what is in the store and in
// the script's files with what the script asked for. The importers, cmd/adjourn and
// functions, contain the trials themselves and make the faults.
package labtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

// The files a script writes to, in its folder.
const (
	lines   = "lines.txt"  // append_line
	onces   = "once.txt"   // append_once
	deploys = "deploy.txt" // deploy, and what a test makes of it
)

// Call is one call of a tool, as a script writes it.
type Call map[string]any

// Effect is a line that a call of the script writes: no other call writes the same.
type Effect struct {
	Tool string
	Line string
	// Denied says that a person refuses the call.
	Denied bool

	file      string
	arguments map[string]any
}

// Script is a script of the lab with what it does to the world. The zero value
// is an empty one, which says "done".
type Script struct {
	items   []any
	effects []Effect
	calls   int
	replies int // without the last one, which ends the turn
	waits   int
	text    string
}

// Add adds a reply that makes these calls.
func (s *Script) Add(calls ...Call) {
	s.replies++
	s.calls += len(calls)
	if len(calls) == 1 {
		s.items = append(s.items, calls[0])
		return
	}
	s.items = append(s.items, map[string]any{"calls": calls})
}

// Repeat adds n replies that make the same call, which has no effect.
func (s *Script) Repeat(n int, c Call) {
	s.Add(c)
	c["repeat"] = n
	s.replies += n - 1
	s.calls += n - 1
}

// Need adds a reply that asks the user for a message.
func (s *Script) Need(text string) {
	s.replies++
	s.waits++
	s.items = append(s.items, map[string]any{"need": text})
}

// Later makes the model fail in a way that may pass: its step is put off.
func (s *Script) Later() {
	s.items = append(s.items, map[string]any{"fail": "rate_limited", "after": "1s"})
}

func (s *Script) effect(name, file, line string, arguments map[string]any) Call {
	s.effects = append(s.effects, Effect{Tool: name, Line: line, file: file, arguments: arguments})
	return Call{"call": name, "with": arguments}
}

// Line is a call that adds a line to a file, at most once.
func (s *Script) Line() Call {
	text := fmt.Sprintf("line %d", len(s.effects))
	return s.effect("append_line", lines, text, map[string]any{"path": lines, "text": text})
}

// Once is a call that adds a line to a file, exactly once.
func (s *Script) Once() Call {
	text := fmt.Sprintf("once %d", len(s.effects))
	return s.effect(once, onces, text, map[string]any{"path": onces, "text": text})
}

// Deploy is a call of the lab's deploy, or of a tool like it, that a person approves.
func (s *Script) Deploy(tool string) Call {
	s.waits++
	service := fmt.Sprintf("service-%d", len(s.effects))
	return s.effect(tool, deploys, "deployed "+service, map[string]any{"service": service, "log": deploys})
}

// Deny is a call of deploy that a person refuses.
func (s *Script) Deny() Call {
	c := s.Deploy("deploy")
	s.effects[len(s.effects)-1].Denied = true
	return c
}

// Echo is a call without an effect.
func (s *Script) Echo() Call { return Call{"call": "echo", "with": map[string]any{"text": "hello"}} }

// Ask is a call that asks a person for a color.
func (s *Script) Ask() Call {
	s.waits++
	return Call{"call": "pick_color"}
}

// Locate is a call that the user's own device answers.
func (s *Script) Locate() Call {
	s.waits++
	return Call{"call": "locate"}
}

// Prepare writes the script for a folder: there its files will be.
func (s *Script) Prepare(dir string) {
	for i, e := range s.effects {
		s.effects[i].file = filepath.Join(dir, filepath.Base(e.file))
		for _, key := range []string{"path", "log"} {
			if _, ok := e.arguments[key]; ok {
				e.arguments[key] = s.effects[i].file
			}
		}
	}
	s.text = ""
	for _, item := range append(slices.Clip(s.items), map[string]any{"say": "done"}) {
		one, _ := json.Marshal(item) // maps of strings can be written, and JSON is YAML
		s.text += fmt.Sprintf("- %s\n", one)
	}
}

// Text is the prepared script, as a user's message holds it.
func (s *Script) Text() string { return s.text }

// Effects are what the script does to the world, in the order of its calls.
func (s *Script) Effects() []Effect { return s.effects }

// EffectOf returns the effect of the call that has these arguments.
func (s *Script) EffectOf(t require.TestingT, arguments json.RawMessage) Effect {
	digest := journal.Digest(arguments)
	at := slices.IndexFunc(s.effects, func(e Effect) bool { return e.digest(t) == digest })
	require.GreaterOrEqual(t, at, 0, "no call of the script has the arguments %s", arguments)
	return s.effects[at]
}

func (e Effect) digest(t require.TestingT) string {
	arguments, err := json.Marshal(e.arguments)
	require.NoError(t, err)
	return journal.Digest(arguments)
}

// Count counts the line in its file.
func (e Effect) Count(t require.TestingT) int {
	text, err := os.ReadFile(e.file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return len(slices.DeleteFunc(all, func(line string) bool { return line != e.Line }))
}

// Report tells the script and what its files hold, for a trial that failed.
func (s *Script) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- script\n%s", s.text)
	told := map[string]bool{}
	for _, e := range s.effects {
		if told[e.file] {
			continue
		}
		told[e.file] = true
		if text, err := os.ReadFile(e.file); err == nil {
			fmt.Fprintf(&b, "-- %s\n%s", filepath.Base(e.file), text)
		}
	}
	return b.String()
}
