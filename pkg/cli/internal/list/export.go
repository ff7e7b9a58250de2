package list

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
)

// ExportCommand is the command export, of one session: which words are one, how it is completed, and
// what is said where there is none, is the command line's.
func (l *Lists) ExportCommand(one cobra.PositionalArgs, complete cobra.CompletionFunc, none func(error, string) error) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export session",
		Short: "Write a session's journal as JSON lines",
		Long: `Write the entries of a session as they are stored, one JSON object a line, the
oldest first: on stdout, or into a new file. What cannot be written whole is an
error, and a file that was begun is removed.`,
		Args:              one,
		ValidArgsFunction: complete,
		RunE: l.do(func(ctx context.Context, args []string) error {
			return none(l.export(ctx, args[0], file), args[0])
		}),
	}
	cmd.Flags().StringVar(&file, "file", "", "new `file` to write into")
	return cmd
}

// export writes the journal of a session as JSON lines, into a new file if one is named. What is not
// whole is an error, and no file.
func (l *Lists) export(ctx context.Context, id, file string) (err error) {
	e, err := l.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	first, err := wholePage(ctx, e, id, 0)
	if err != nil {
		return err
	}
	if len(first.Items) == 0 {
		return exit.Refusef(client.CodeInternal, id, "its journal is empty, which no session's is: its data is damaged, or what answered is no Adjourn server")
	}
	if file == "" {
		_, err = writeLines(ctx, e, id, first, stdout{l})
		return errors.Join(err, l.Unwritten())
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // arguments of tools may be secrets
	if errors.Is(err, os.ErrExist) {
		return exit.Usagef("%s is there already: name a new file", file)
	}
	if err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	count, err := writeLines(ctx, e, id, first, out)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	l.Talk("Session %s: %s in %s.", id, entries(count), file)
	return nil
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// stdout is the screen's: what is printed on it is safe on a terminal, and the same to a program.
type stdout struct{ l *Lists }

func (s stdout) Write(line []byte) (int, error) {
	s.l.Write(s.l.Stdout, string(line))
	return len(line), s.l.Unwritten()
}

// wholePage is one page of a journal, in which nothing may be missing.
func wholePage(ctx context.Context, e *place.Connection, id string, after int64) (client.Entries, error) {
	page, err := e.Client.Entries(ctx, id, client.EntriesParams{After: after})
	if err != nil {
		return page, err
	}
	if len(page.LeftOut) > 0 {
		return page, exit.Refusef(client.CodeInternal, id, "values after entry %d are too large for the server to send, so its journal cannot be exported from here", after)
	}
	for i := range page.Items {
		if seq := page.Items[i].Seq; seq != after+int64(i)+1 {
			return page, fmt.Errorf("%w: entry %d follows entry %d", client.ErrNotAdjourn, seq, after+int64(i))
		}
	}
	if page.More && len(page.Items) == 0 {
		return page, fmt.Errorf("%w: entries after %d would be asked for again and again", client.ErrNotAdjourn, after)
	}
	return page, nil
}

// writeLines writes a page and all that follow it, and returns how many entries there were.
func writeLines(ctx context.Context, e *place.Connection, id string, page client.Entries, out io.Writer) (count int64, err error) {
	for {
		for i := range page.Items {
			var line bytes.Buffer
			encoder := json.NewEncoder(&line)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(&page.Items[i]); err != nil {
				return count, fmt.Errorf("export session %s: entry %d: %w", id, page.Items[i].Seq, err)
			}
			if _, err := out.Write(line.Bytes()); err != nil {
				return count, fmt.Errorf("export session %s: %w", id, err)
			}
			count++
		}
		if !page.More {
			return count, nil
		}
		if page, err = wholePage(ctx, e, id, count); err != nil {
			return count, err
		}
	}
}
