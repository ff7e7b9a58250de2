package work

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/client"
)

// AboutTag says what a tag of a session is for.
const AboutTag = "`tag` of the session, by which sessions finds it; may be given several times"

// Begin are the flags that say what a session begins with beside its input.
type Begin struct {
	tags, metadata []string
	state          string
}

// Register adds the flags to those of a command.
func (f *Begin) Register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.tags, "tag", nil, AboutTag)
	flags.StringVar(&f.state, "state", "", "state of a new session by key, as a `JSON` object; @FILE reads it from a file")
	flags.StringArrayVar(&f.metadata, "metadata", nil, "`key=value` for your own use, which is shown with the session; may be given several times")
}

// Fill puts what was given into a start.
func (f *Begin) Fill(start *client.StartRequest) (err error) {
	start.Tags = f.tags
	if f.state != "" {
		if start.State, err = readState(f.state); err != nil {
			return err
		}
	}
	for _, given := range f.metadata {
		key, value, found := strings.Cut(given, "=")
		if _, twice := start.Metadata[key]; !found || key == "" || twice {
			return exit.Usagef("--metadata %q: write it as KEY=VALUE, each key once", given)
		}
		if start.Metadata == nil {
			start.Metadata = map[string]string{}
		}
		start.Metadata[key] = value
	}
	return nil
}

// readState reads a state: the JSON itself, or @ and the file that has it.
func readState(given string) (state map[string]json.RawMessage, err error) {
	text := given
	if path, is := strings.CutPrefix(given, "@"); is {
		if text, err = readFile(path); err != nil {
			return nil, err
		}
	}
	raw, err := prompt.ReadJSON(text)
	if err != nil {
		return nil, exit.Usagef("--state: %v", err)
	}
	if err := json.Unmarshal(raw, &state); err != nil || state == nil {
		return nil, exit.Usagef(`--state: it has to be a JSON object, as in '{"count": 3}', or @FILE`)
	}
	return state, nil
}

// readFile reads what a flag names: not more of it than a session takes.
func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", exit.Usagef("--state: %v", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, client.MaxInput+1))
	if err != nil {
		return "", exit.Usagef("--state: %v", err)
	}
	if len(text) > client.MaxInput {
		return "", &exit.RefusalError{Code: client.CodeInputTooLarge, Message: fmt.Sprintf("%s is larger than %d MiB, and no session begins with such a state", path, client.MaxInput>>20)}
	}
	return string(text), nil
}
