// Package work is the commands that work on all sessions of a data file: work, dev.
package work

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
)

// Config is what the commands are made with; all fields are required.
type Config struct {
	Screen *screen.Screen
	Place  *place.Place
	Who    string
	Now    func() time.Time
	// Here wraps the work of a command on this machine's data.
	Here func(command string, work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error
	// NoArgs refuses arguments, with advice.
	NoArgs func(advice string) cobra.PositionalArgs
}

// Commands are the commands of workers.
type Commands struct {
	*screen.Screen
	*place.Place
	cfg Config
}

// New returns the commands of workers.
func New(cfg Config) *Commands { return &Commands{Screen: cfg.Screen, Place: cfg.Place, cfg: cfg} }
