//go:build aws && linux

package functions_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// The files a script writes to.
const (
	lines   = "lines.txt"  // append_line
	onces   = "once.txt"   // append_once
	deploys = "deploy.txt" // deploy, release
)

// effect is a line that a call of the script writes: no other call writes the same.
type effect struct {
	tool, file, line string
	arguments        map[string]any
}

// script is a script of the lab with what it does to the world.
type script struct {
	items   []map[string]any
	effects []effect
	calls   int
	replies int // without the last one, which ends the turn
	waits   int
	denied  map[string]bool // lines that a person refuses
	text    string
}

type call = map[string]any

func (s *script) add(calls ...call) {
	s.replies++
	s.calls += len(calls)
	if len(calls) == 1 {
		s.items = append(s.items, calls[0])
		return
	}
	s.items = append(s.items, map[string]any{"calls": calls})
}

func (s *script) effect(name, file, line string, arguments map[string]any) call {
	s.effects = append(s.effects, effect{name, file, line, arguments})
	return call{"call": name, "with": arguments}
}

func (s *script) line() call {
	text := fmt.Sprintf("line %d", len(s.effects))
	return s.effect("append_line", lines, text, map[string]any{"path": lines, "text": text})
}

func (s *script) once() call {
	text := fmt.Sprintf("once %d", len(s.effects))
	return s.effect("append_once", onces, text, map[string]any{"path": onces, "text": text})
}

func (s *script) deploy(name string) call {
	s.waits++
	service := fmt.Sprintf("service-%d", len(s.effects))
	return s.effect(name, deploys, "deployed "+service, map[string]any{"service": service, "log": deploys})
}

func (s *script) deny() call {
	c := s.deploy("deploy")
	if s.denied == nil {
		s.denied = map[string]bool{}
	}
	s.denied[s.effects[len(s.effects)-1].line] = true
	return c
}

func (s *script) echo() call {
	return call{"call": "echo", "with": map[string]any{"text": "hello"}}
}

func (s *script) ask() call {
	s.waits++
	return call{"call": "pick_color"}
}

// later makes the model fail in a way that may pass: its step is put off.
func (s *script) later() {
	s.items = append(s.items, map[string]any{"fail": "rate_limited", "after": "1s"})
}

// prepare writes the script for a folder.
func (s *script) prepare(dir string) {
	for _, e := range s.effects {
		for _, key := range []string{"path", "log"} {
			if name, ok := e.arguments[key].(string); ok {
				e.arguments[key] = filepath.Join(dir, filepath.Base(name))
			}
		}
	}
	s.text = ""
	for _, item := range append(s.items[:len(s.items):len(s.items)], map[string]any{"say": "done"}) {
		one, _ := json.Marshal(item) // maps of strings can be written, and JSON is YAML
		s.text += fmt.Sprintf("- %s\n", one)
	}
}

// random writes a script with every kind of call: alone and up to four in one
// reply, what a person must approve or answer, and now and then a step put off.
func random(rng *rand.Rand) script {
	var s script
	kinds := []func() call{s.line, s.line, s.once, s.echo}
	batch := func(more ...call) {
		for range 2 + rng.IntN(3) - len(more) {
			more = append(more, kinds[rng.IntN(len(kinds))]())
		}
		rng.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
		s.add(more...)
	}
	parts := []func(){
		func() { s.add(s.line()) },
		func() { s.add(s.once()) },
		func() { s.add(s.echo()) },
		func() { batch() },
		func() { batch(s.line(), s.once()) },
		func() { s.add(s.ask()) },
	}
	switch rng.IntN(4) {
	case 0:
		parts = append(parts, func() { s.add(s.deploy("deploy")) })
	case 1:
		parts = append(parts, func() { s.add(s.deny()) })
	case 2:
		parts = append(parts, func() { s.add(s.deploy("deploy"), s.deny()) })
	default:
		parts = append(parts, func() { batch(s.deploy("deploy")) })
	}
	if rng.IntN(3) == 0 {
		parts = append(parts, s.later)
	}
	rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		part()
	}
	return s
}

// fixed is the script of the tests that name a place: short, with every kind of call.
func fixed(approved string) script {
	var s script
	s.add(s.echo())
	s.add(s.line(), s.once())
	s.add(s.deploy(approved), s.line())
	s.add(s.once())
	return s
}

// drop leaves out the items that have a key.
func (s *script) drop(key string) {
	s.items = slices.DeleteFunc(s.items, func(item map[string]any) bool { return item[key] != nil })
}
