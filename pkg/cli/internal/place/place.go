// Package place is where the sessions of a command live: in a data file, or behind a server.
//
// It holds what the words of a command and the environment say about that,
// opens what commands do with sessions there, and prints commands that lead to
// the same place.
package place

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// Config is what a place depends on beside the words of the command; all but
// ProgramArgs, Now and Decorate are required.
type Config struct {
	// Registry of the agents that work on a data file.
	Registry func() (*agent.Registry, error)
	// Program and ProgramArgs are the words every printed command begins with.
	Program     string
	ProgramArgs []string
	// Who uses the commands: recorded with what they do to a data file.
	Who string
	// UserAgent is what a server is told this program is.
	UserAgent string
	// Env reads a variable of the environment.
	Env func(string) string
	// Now is the clock; nil means the machine's.
	Now func() time.Time
	// Screen shows the progress of sessions, and the log.
	Screen *screen.Screen
	// Decorate may put something around the ports; a test's door.
	Decorate func(app.Parts) app.Parts
}

// LongestPatience is how long a write waits for another process at most.
const LongestPatience = sqlite.WaitFor

// Place says where the sessions live: in a data file, or behind a server. What
// was said in the command's words counts before what the environment says.
type Place struct {
	Config

	// Watch is told every entry that is written to the data file, beside the progress.
	Watch func(session.Key, runtime.Progress)

	// Trust asks whether a data file that this user has never used may be worked on, and
	// reports whether somebody said yes. Nil, or where there is nobody to ask, means no.
	Trust func(context.Context, Unknown) (bool, error)

	// Patience is how long a write waits for another process that holds the data file;
	// 0 means the store's own.
	Patience time.Duration

	flags     *pflag.FlagSet
	data      string
	url       string
	tokenFile string
	plainHTTP bool
	trustData bool
	halts     haltTeller
	made      string // what the data file is known by, if this command made it
}

// New returns the place the environment names.
func New(cfg Config) *Place {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Place{Config: cfg}
}

// Register adds the flags that name another place.
func (p *Place) Register(flags *pflag.FlagSet) {
	p.flags = flags
	flags.StringVar(&p.data, "data", "", "data `file` (default: ADJOURN_DATA, else "+app.DefaultData+")")
	flags.BoolVar(&p.trustData, "trust-data", false, "work on a data file that you have never used, without asking (default: ADJOURN_TRUST_DATA):\nwhat is approved in it runs, whoever wrote it")
	flags.StringVar(&p.url, "url", "", "speak to the server at this `URL` instead (default: ADJOURN_URL)")
	flags.StringVar(&p.tokenFile, "token-file", "", "read the server's token from a `file` (default: the token in ADJOURN_TOKEN)")
	flags.BoolVar(&p.plainHTTP, "allow-plain-http", false, "send the token also where it can be read on the way")
}

func (p *Place) given(flag string) bool { return p.flags != nil && p.flags.Changed(flag) }

// Server returns the URL of the server commands speak to; "" for a data file.
func (p *Place) Server() string {
	if p.url != "" || p.given("data") {
		return p.url
	}
	return p.Env("ADJOURN_URL")
}

// Remote reports whether commands speak to a server.
func (p *Place) Remote() bool { return p.Server() != "" }

// DataPath returns the data file commands work on when there is no server.
func (p *Place) DataPath() string {
	if p.data != "" {
		return p.data
	}
	if path := p.Env("ADJOURN_DATA"); path != "" {
		return path
	}
	return app.DefaultData
}

// Scratch is where a person's editor gets its folder, beside which killed commands may
// have left theirs: with the data, which holds the same, or where this machine has such.
func (p *Place) Scratch() string {
	if p.Remote() {
		return filepath.Join(os.TempDir(), "adjourn-edit")
	}
	return filepath.Join(filepath.Dir(p.DataPath()), "edit")
}

// Where names what commands speak to, for people.
func (p *Place) Where() string {
	if p.Remote() {
		return p.Server()
	}
	return p.DataPath()
}

// NoData reports whether there is no data file where this place is one: then nothing is
// known to be empty, and what was meant may be elsewhere.
func (p *Place) NoData() bool {
	if p.Remote() {
		return false
	}
	_, err := os.Stat(p.DataPath())
	return errors.Is(err, fs.ErrNotExist)
}

// Check refuses what cannot be meant.
func (p *Place) Check() error {
	switch {
	case p.given("url") && p.given("data"):
		return exit.Usagef("--url and --data cannot go together: sessions are behind a server, or in a file")
	case p.given("url") && p.url == "":
		return exit.Usagef("--url is empty: name a server, or leave it out")
	case p.given("data") && p.data == "":
		return exit.Usagef("--data is empty: name a file, or leave it out for %s", app.DefaultData)
	case p.Remote() && p.trustData:
		return exit.Usagef("--trust-data belongs to a data file, and %s is a server: leave it out", p.Server())
	case p.Remote():
		// Before anything is printed of it: it may hold a password.
		_, err := client.New(client.Config{URL: p.Server()})
		return p.badServer(err, false)
	case p.given("token-file"):
		return exit.Usagef("--token-file belongs to a server: name it with --url")
	case p.DataPath() == ":memory:":
		return exit.Usagef("data in memory would be gone before anybody answers: name a file")
	}
	return nil
}

// CheckHere refuses a command that works on this machine's data only.
func (p *Place) CheckHere(command string) error {
	switch {
	case !p.Remote():
		return nil
	case p.url != "":
		return exit.Usagef("%s works on this machine only: leave out --url", command)
	}
	return exit.Usagef("%s works on this machine only, and ADJOURN_URL says %s: unset it, or name a data file with --data", command, p.Server())
}

// UseData names the data file, as --data does.
func (p *Place) UseData(path string) { p.data = path }

// At returns the place behind a server of this machine.
func (p *Place) At(url, tokenFile string) *Place {
	return &Place{Config: p.Config, url: url, tokenFile: tokenFile}
}
