package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxDepth is how deep arguments may be nested.
const maxDepth = 64

type convertError struct {
	node    *yaml.Node
	message string
}

// toJSON writes a YAML value as JSON. Keys keep their order and must be text;
// dates stay the text they were written as. YAML's own decoder would do neither.
func toJSON(node *yaml.Node) ([]byte, *convertError) {
	var b bytes.Buffer
	if err := writeJSON(&b, node, 0); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeJSON(b *bytes.Buffer, node *yaml.Node, depth int) *convertError {
	switch {
	case depth > maxDepth:
		return &convertError{node, fmt.Sprintf("nested more than %d deep", maxDepth)}
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return &convertError{node, "anchors and aliases are not read; write the value out"}
	case node.Kind == yaml.MappingNode:
		return writeObject(b, node, depth)
	case node.Kind == yaml.SequenceNode:
		b.WriteByte('[')
		for i, value := range node.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, value, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	return writeScalar(b, node)
}

func writeObject(b *bytes.Buffer, node *yaml.Node, depth int) *convertError {
	seen := map[string]bool{}
	b.WriteByte('{')
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			return &convertError{key, "a key must be text; put " + valueOf(key) + " in quotes"}
		}
		if seen[key.Value] {
			return &convertError{key, fmt.Sprintf("%q is there twice; keep one", key.Value)}
		}
		seen[key.Value] = true
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeValue(b, key, key.Value); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := writeJSON(b, node.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeScalar(b *bytes.Buffer, node *yaml.Node) *convertError {
	switch node.ShortTag() {
	case "!!str", "!!timestamp":
		return writeValue(b, node, node.Value)
	case "!!null":
		return writeValue(b, node, nil)
	case "!!int", "!!float":
		if isDecimal(node.Value) {
			b.WriteString(node.Value) // digit for digit: no Go number holds all of them
			return nil
		}
		return writeDecoded(b, node)
	case "!!bool":
		return writeDecoded(b, node)
	}
	return &convertError{node, "the tag " + node.ShortTag() + " is not read; write a plain value"}
}

// isDecimal reports whether text is a number in JSON as it stands, without an exponent.
func isDecimal(text string) bool {
	return strings.Trim(text, "-.0123456789") == "" && json.Valid([]byte(text))
}

func writeDecoded(b *bytes.Buffer, node *yaml.Node) *convertError {
	var value any
	if err := node.Decode(&value); err != nil {
		return &convertError{node, fmt.Sprintf("%s is not understood; put it in quotes", valueOf(node))}
	}
	return writeValue(b, node, value)
}

func writeValue(b *bytes.Buffer, node *yaml.Node, value any) *convertError {
	text, err := json.Marshal(value)
	if err != nil { // .nan and .inf have no JSON form
		return &convertError{node, valueOf(node) + " has no form in JSON; put it in quotes"}
	}
	b.Write(text)
	return nil
}
