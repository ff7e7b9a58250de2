package llm_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

// TestMessage_Size: a part counts by its size, whichever field is large.
func TestMessage_Size(t *testing.T) {
	t.Parallel()
	const large = 100_000
	data := bytes.Repeat([]byte("x"), large)
	for name, part := range map[string]llm.Part{
		"text":   llm.Text(string(data)),
		"opaque": {Kind: llm.PartReasoning, Opaque: data},
		"call":   {Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Arguments: data}},
		"result": {Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{Output: data}},
		"file":   {Kind: llm.PartFile, File: &llm.FileRef{Data: data}},
		"url":    {Kind: llm.PartFile, File: &llm.FileRef{URL: string(data)}},
	} {
		size := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{part}}.Size()
		require.InDelta(t, large, size, 1000, name)
		require.Greater(t, size, large, name)
	}
}
