package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/llm"
)

// MaxInput is the largest [Content] in bytes, all its parts together.
const MaxInput = codes.MaxInput

// Content is a user's message: text, images, files. [Text] makes one of a text. In
// JSON it is a string, or a list of parts.
type Content []llm.Part

// Text returns a text as a message.
func Text(text string) Content { return llm.TextParts(text) }

// UnmarshalJSON takes a string or a list of parts.
func (c *Content) UnmarshalJSON(raw []byte) error {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '"' {
		var text string
		if err := json.Unmarshal(trimmed, &text); err != nil {
			return err
		}
		*c = Text(text)
		return nil
	}
	err := json.Unmarshal(raw, (*[]llm.Part)(c))
	if mistake := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistake) {
		where := "there"
		if mistake.Field != "" {
			where = "at " + mistake.Field
		}
		return fmt.Errorf("a message is a string, or a list of parts that are objects: a JSON %s does not belong %s", mistake.Value, where)
	}
	return err
}

// MarshalJSON writes one text as a string, all else as a list.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c) == 1 && c[0].Kind == llm.PartText && c[0].Provider == "" && c[0].Opaque == nil && c[0].ToolCall == nil && c[0].ToolResult == nil && c[0].File == nil {
		return json.Marshal(c[0].Text)
	}
	return json.Marshal([]llm.Part(c))
}
