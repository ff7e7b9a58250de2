package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/internal/private"
)

// Edit lets the person change arguments in their editor.
func (p *Person) Edit(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	editor := p.Env("VISUAL")
	if editor == "" {
		editor = p.Env("EDITOR")
	}
	if editor == "" {
		return nil, errors.New("there is no editor: set EDITOR")
	}
	return p.editIn(ctx, editor, arguments)
}

// edit lets the person change arguments: given in the same line, in their
// editor, or typed as one line where no editor is named.
func (p *Person) edit(ctx context.Context, arguments json.RawMessage, inline string) (json.RawMessage, error) {
	if inline != "" {
		return ReadJSON(inline)
	}
	editor := p.Env("VISUAL")
	if editor == "" {
		editor = p.Env("EDITOR")
	}
	if editor == "" {
		text, err := p.prompt(ctx, "New arguments, as JSON on one line: ")
		if err != nil {
			return nil, err
		}
		return ReadJSON(text)
	}
	return p.editIn(ctx, editor, arguments)
}

func (p *Person) editIn(ctx context.Context, editor string, arguments json.RawMessage) (edited json.RawMessage, err error) {
	folder, err := private.MakeFolder(p.Place.Scratch()) // editors leave more than one file
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	var text bytes.Buffer
	if json.Indent(&text, arguments, "", "  ") != nil {
		text.Write(arguments)
	}
	text.WriteByte('\n')
	path := filepath.Join(folder.Path(), "arguments.json")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return nil, err
	}
	// EDITOR may hold arguments of its own, as in "code --wait"; the shell splits
	// them. Ctrl-C in an editor is the editor's: killed in the middle, it would
	// leave the terminal in disorder.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", editor+` "$1"`, "editor", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Screen.Stderr, p.Screen.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", editor, err)
	}
	changed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ReadJSON(string(changed))
}

// ReadJSON returns JSON that a person typed, or says what is wrong with it.
func ReadJSON(text string) (json.RawMessage, error) {
	raw := json.RawMessage(strings.TrimSpace(text))
	if len(raw) == 0 {
		return nil, errors.New("this is empty, not JSON")
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, errors.New("not valid JSON: " + err.Error())
	}
	return raw, nil
}
