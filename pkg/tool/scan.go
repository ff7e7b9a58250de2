package tool

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/pkg/tool/internal/shape"
)

// maxExponent bounds the exponents of numbers: no number of ours needs more, and
// exact arithmetic on 1e999999999 would take all memory there is.
const maxExponent = 400

// scan looks for what the schema cannot see. A property that is given twice is
// ambiguous: the validator would see the last, Go may merge both, and a person
// who approves sees the text. Go finds fields whatever the case of their letters,
// so properties that differ in case only are one given twice. It expects valid JSON.
func scan(args json.RawMessage) []Problem {
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber()
	var s scanner
	for {
		token, err := decoder.Token()
		if err != nil {
			return s.problems
		}
		s.token(token)
	}
}

type scanner struct {
	stack    []container
	problems []Problem
}

type container struct {
	keys  map[string]string // those seen, by what they fold to; nil in an array
	key   string
	isKey bool // the next token is a key
	index int
}

func (s *scanner) token(token json.Token) {
	if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
		s.stack = s.stack[:len(s.stack)-1]
		s.next()
		return
	}
	if top := s.top(); top != nil && top.isKey {
		key, _ := token.(string)
		top.key, top.isKey = key, false
		folded := shape.Fold(key)
		first, twice := top.keys[folded]
		switch {
		case !twice:
			top.keys[folded] = key
		case first == key:
			s.problems = append(s.problems, Problem{At: s.at(), Message: "given more than once"})
		default:
			s.problems = append(s.problems, Problem{At: s.at(), Message: "given more than once: " + quote(first) + " differs in case only"})
		}
		return
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			s.stack = append(s.stack, container{keys: map[string]string{}, isKey: true})
		} else {
			s.stack = append(s.stack, container{})
		}
		return
	case json.Number:
		if tooLarge(v.String()) {
			s.problems = append(s.problems, Problem{At: s.at(), Message: "this number is too large: " + quote(v.String())})
		}
	}
	s.next()
}

func (s *scanner) top() *container {
	if len(s.stack) == 0 {
		return nil
	}
	return &s.stack[len(s.stack)-1]
}

// next moves on after a value.
func (s *scanner) next() {
	top := s.top()
	switch {
	case top == nil:
	case top.keys != nil:
		top.isKey = true
	default:
		top.index++
	}
}

func (s *scanner) at() string {
	tokens := make([]string, 0, len(s.stack))
	for _, c := range s.stack {
		if c.keys != nil {
			tokens = append(tokens, c.key)
		} else {
			tokens = append(tokens, strconv.Itoa(c.index))
		}
	}
	return pointer(tokens)
}

func tooLarge(number string) bool {
	if len(number) > 2*maxExponent {
		return true
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return false
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err != nil || exponent > maxExponent || exponent < -maxExponent
}
