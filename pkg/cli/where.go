package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/remote"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// where says where the sessions live: in a data file, or behind a server. What
// was said in the command's words counts before what the environment says.
type where struct {
	flags     *pflag.FlagSet
	data      string
	url       string
	tokenFile string
	plainHTTP bool
}

func (w *where) register(flags *pflag.FlagSet) {
	w.flags = flags
	flags.StringVar(&w.data, "data", "", "data `file` (default: ADJOURN_DATA, else "+app.DefaultData+")")
	flags.StringVar(&w.url, "url", "", "speak to the server at this `URL` instead (default: ADJOURN_URL)")
	flags.StringVar(&w.tokenFile, "token-file", "", "read the server's token from a `file` (default: the token in ADJOURN_TOKEN)")
	flags.BoolVar(&w.plainHTTP, "allow-plain-http", false, "send the token also where it can be read on the way")
}

func (w *where) given(flag string) bool { return w.flags != nil && w.flags.Changed(flag) }

// server returns the URL of the server commands speak to; "" for a data file.
func (c *cli) server() string {
	if c.where.url != "" || c.where.given("data") {
		return c.where.url
	}
	return c.Env("ADJOURN_URL")
}

func (c *cli) remote() bool { return c.server() != "" }

// dataPath returns the data file commands work on when there is no server.
func (c *cli) dataPath() string {
	if c.where.data != "" {
		return c.where.data
	}
	if path := c.Env("ADJOURN_DATA"); path != "" {
		return path
	}
	return app.DefaultData
}

// place names what commands speak to, for people.
func (c *cli) place() string {
	if c.remote() {
		return c.server()
	}
	return c.dataPath()
}

// checkWhere refuses what cannot be meant.
func (c *cli) checkWhere() error {
	w := &c.where
	switch {
	case w.given("url") && w.given("data"):
		return usage("--url and --data cannot go together: sessions are behind a server, or in a file")
	case w.given("url") && w.url == "":
		return usage("--url is empty: name a server, or leave it out")
	case w.given("data") && w.data == "":
		return usage("--data is empty: name a file, or leave it out for %s", app.DefaultData)
	case c.remote():
		// Before anything is printed of it: it may hold a password.
		_, err := client.New(client.Config{URL: c.server()})
		return c.badServer(err, false)
	case w.given("token-file"):
		return usage("--token-file belongs to a server: name it with --url")
	case c.dataPath() == ":memory:":
		return usage("data in memory would be gone before anybody answers: name a file")
	}
	return nil
}

// checkHere refuses a command that works on this machine's data only.
func (c *cli) checkHere(command string) error {
	switch {
	case !c.remote():
		return nil
	case c.where.url != "":
		return usage("%s works on this machine only: leave out --url", command)
	}
	return usage("%s works on this machine only, and ADJOURN_URL says %s: unset it, or name a data file with --data", command, c.server())
}

// whereFlags returns the flags that lead a printed command to the same place, also
// in another folder and another shell. A token is never among them.
func (c *cli) whereFlags() []string {
	if !c.remote() {
		return c.dataFlags()
	}
	flags := []string{"--url", c.server()}
	if path := c.where.tokenFile; path != "" {
		flags = append(flags, "--token-file", absolute(path))
	}
	if c.where.plainHTTP {
		flags = append(flags, "--allow-plain-http")
	}
	return flags
}

func (c *cli) dataFlags() []string {
	path := c.dataPath()
	standard := filepath.Clean(path) == filepath.FromSlash(app.DefaultData) && c.Env("ADJOURN_DATA") == "" && c.Env("ADJOURN_URL") == ""
	if standard {
		return nil
	}
	return []string{"--data", absolute(path)}
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// openServer returns the engine of the server. Nothing is sent yet.
func (c *cli) openServer() (engine, error) {
	c.progress = newProgress(c)
	if _, err := app.ReadSettings(c.Env); err != nil {
		return nil, err
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	speaker, err := client.New(client.Config{URL: c.server(), Token: token, AllowPlainHTTP: c.where.plainHTTP, UserAgent: c.name() + "/" + version()})
	if err != nil {
		return nil, c.badServer(err, token != "")
	}
	return remote.New(remote.Config{Client: speaker, OnEntry: func(_ session.Key, p runtime.Progress) { c.progress.entry(p) }})
}

// badServer says why no client can be made for a URL, or a token.
func (c *cli) badServer(err error, withToken bool) error {
	if err == nil {
		return nil
	}
	from := "--url"
	if c.where.url == "" {
		from = "ADJOURN_URL"
	}
	text := from + ": " + strings.TrimPrefix(err.Error(), client.ErrInvalidConfig.Error()+": ")
	switch {
	case withToken && strings.HasSuffix(text, "Use https"):
		text += ", or say --allow-plain-http if that is as it should be"
	case strings.HasSuffix(text, "password; leave them out"):
		text += "; a token goes into ADJOURN_TOKEN, or into a file that --token-file names"
	}
	return &usageError{text: text, cause: err}
}

// maxToken is more than any token is long.
const maxToken = 16 << 10

// token returns what the server knows the caller by. It is never an argument: those
// are seen by everybody on the machine, and kept in the history of shells.
func (c *cli) token() (string, error) {
	path := c.where.tokenFile
	if path == "" {
		return strings.TrimSpace(c.Env("ADJOURN_TOKEN")), nil
	}
	text, err := os.ReadFile(path)
	var broken *os.PathError
	switch token := strings.TrimSpace(string(text)); {
	case errors.As(err, &broken):
		return "", usage("--token-file %s: %v", path, broken.Err)
	case err != nil:
		return "", usage("--token-file %s: %v", path, err)
	case token == "":
		return "", usage("--token-file %s: the file is empty", path)
	case len(token) > maxToken || strings.ContainsAny(token, "\n\r"):
		return "", usage("--token-file %s: the file holds more than a token", path)
	default:
		return token, nil
	}
}

// tokenHint says where the token came from that a server refused, or should.
func (c *cli) tokenHint() string {
	switch {
	case c.where.tokenFile != "":
		return "the token is that of " + c.where.tokenFile
	case c.Env("ADJOURN_TOKEN") != "":
		return "the token is that of ADJOURN_TOKEN"
	}
	return "no token was sent: put it into ADJOURN_TOKEN, or name its file with --token-file"
}

// serveHint is the command that starts a server on this machine.
func (c *cli) serveHint() string {
	words := []string{quote(c.Program)}
	for _, word := range c.ProgramArgs {
		words = append(words, quote(word))
	}
	return strings.Join(append(words, "dev"), " ")
}
