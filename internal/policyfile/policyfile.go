// Package policyfile reads a policy of tools as a person writes it, in YAML or JSON.
package policyfile

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/adjourn/adjourn/pkg/session"
)

// maxBytes is how large a policy may be.
const maxBytes = 64 << 10

// Read reads a policy from a file: {tools: {name: auto|prompt|never}, default: …, never: …}.
func Read(path string) (*session.ToolPolicy, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("%s has %d bytes, and %d is the most", path, info.Size(), maxBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	policy, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return policy, nil
}

// errEmpty refuses a policy that says nothing: a file that was cut off must not let everything run.
var errEmpty = errors.New("it says nothing: name tools, or a default; for none leave the policy out")

// Parse reads a policy. Words that it does not know are refused, and so is one that says nothing.
func Parse(text []byte) (*session.ToolPolicy, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, and %d is the most", len(text), maxBytes)
	}
	if strings.TrimSpace(string(text)) == "" {
		return nil, errEmpty
	}
	policy := &session.ToolPolicy{}
	if err := yaml.Load(text, policy, yaml.WithKnownFields()); err != nil {
		return nil, err //nolint:wrapcheck // it says the line
	}
	if err := policy.Validate(); err != nil {
		return nil, err //nolint:wrapcheck // it says the tool
	}
	if reflect.ValueOf(*policy).IsZero() {
		return nil, errEmpty
	}
	return policy, nil
}

// Setting reads a policy from a setting: the policy itself, in braces, or the path of its file.
func Setting(value string) (*session.ToolPolicy, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return Parse([]byte(value))
	}
	return Read(value)
}
