package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// edit lets the person change arguments: given in the same line, in their
// editor, or typed as one line where no editor is named.
func (c *cli) edit(ctx context.Context, arguments json.RawMessage, inline string) (json.RawMessage, error) {
	if inline != "" {
		return valid(inline)
	}
	editor := c.Env("VISUAL")
	if editor == "" {
		editor = c.Env("EDITOR")
	}
	if editor == "" {
		text, err := c.prompt(ctx, "New arguments, as JSON on one line: ")
		if err != nil {
			return nil, err
		}
		return valid(text)
	}
	return c.editIn(ctx, editor, arguments)
}

func (c *cli) editIn(ctx context.Context, editor string, arguments json.RawMessage) (edited json.RawMessage, err error) {
	f, err := os.CreateTemp("", "adjourn-*.json") // mode 0600
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	var text bytes.Buffer
	if json.Indent(&text, arguments, "", "  ") != nil {
		text.Write(arguments)
	}
	text.WriteByte('\n')
	if _, err := f.Write(text.Bytes()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	// EDITOR may hold arguments of its own, as in "code --wait"; the shell splits
	// them. Ctrl-C in an editor is the editor's: killed in the middle, it would
	// leave the terminal in disorder.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", editor+` "$1"`, "editor", f.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stderr, c.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", editor, err)
	}
	changed, err := os.ReadFile(f.Name())
	if err != nil {
		return nil, err
	}
	return valid(string(changed))
}
