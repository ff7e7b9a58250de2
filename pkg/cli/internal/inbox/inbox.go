// Package inbox shows what waits to a person who decides it, and has the commands that act on one wait, or say who stands in for whom.
package inbox

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
)

// Config is what the commands are made with; all fields are required.
type Config struct {
	Screen *screen.Screen
	// Stdin is what a person types on, Person whether there is one, and their editor.
	Stdin  io.Reader
	Person *prompt.Person
	Place  *place.Place
	Now    func() time.Time
	// Do wraps a command's work.
	Do func(work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error
	// Complete completes a session and one of its waits.
	Complete cobra.CompletionFunc
	// NoSession says what is wrong where there is no data file.
	NoSession func(err error, id string) error
	// Refused says where a session stands that refused a request.
	Refused func(ctx context.Context, e *place.Connection, id string, err error) error
	// Drive works on a session until it rests, and prints where it stands.
	Drive func(ctx context.Context, e *place.Connection, id string, stay *work.Stay) error
}

// Inbox has the commands.
type Inbox struct{ cfg Config }

// New returns the commands of a command line.
func New(cfg Config) *Inbox { return &Inbox{cfg: cfg} }
