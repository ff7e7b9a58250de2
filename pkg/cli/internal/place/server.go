package place

import (
	"errors"
	"os"
	"strings"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/client"
)

// openServer connects to the server. Nothing is sent yet.
func (p *Place) openServer() (*Connection, error) {
	p.Screen.ShowProgress()
	if _, err := app.ReadSettings(p.Env); err != nil {
		return nil, err
	}
	token, err := p.token()
	if err != nil {
		return nil, err
	}
	speaker, err := client.New(client.Config{URL: p.Server(), Token: token, AllowPlainHTTP: p.plainHTTP, UserAgent: p.UserAgent})
	if err != nil {
		return nil, p.badServer(err, token != "")
	}
	connection := newConnection(speaker, p.progress)
	connection.onHalt = p.tellHalt
	return connection, nil
}

// badServer says why no client can be made for a URL, or a token.
func (p *Place) badServer(err error, withToken bool) error {
	if err == nil {
		return nil
	}
	from := "--url"
	if p.url == "" {
		from = "ADJOURN_URL"
	}
	text := from + ": " + strings.TrimPrefix(err.Error(), client.ErrInvalidConfig.Error()+": ")
	switch {
	case withToken && strings.HasSuffix(text, "Use https"):
		text += ", or say --allow-plain-http if that is as it should be"
	case strings.HasSuffix(text, "password; leave them out"):
		text += "; a token goes into ADJOURN_TOKEN, or into a file that --token-file names"
	}
	return &exit.UsageError{Text: text, Cause: err}
}

// maxToken is more than any token is long.
const maxToken = 16 << 10

// token returns what the server knows the caller by. It is never an argument: those
// are seen by everybody on the machine, and kept in the history of shells.
func (p *Place) token() (string, error) {
	path := p.tokenFile
	if path == "" {
		return strings.TrimSpace(p.Env("ADJOURN_TOKEN")), nil
	}
	text, err := os.ReadFile(path)
	var broken *os.PathError
	switch token := strings.TrimSpace(string(text)); {
	case errors.As(err, &broken):
		return "", exit.Usagef("--token-file %s: %v", path, broken.Err)
	case err != nil:
		return "", exit.Usagef("--token-file %s: %v", path, err)
	case token == "":
		return "", exit.Usagef("--token-file %s: the file is empty", path)
	case len(token) > maxToken || strings.ContainsAny(token, "\n\r"):
		return "", exit.Usagef("--token-file %s: the file holds more than a token", path)
	default:
		return token, nil
	}
}

// TokenHint says where the token came from that a server refused, or should.
func (p *Place) TokenHint() string {
	switch {
	case p.tokenFile != "":
		return "the token is that of " + p.tokenFile
	case p.Env("ADJOURN_TOKEN") != "":
		return "the token is that of ADJOURN_TOKEN"
	}
	return "no token was sent: put it into ADJOURN_TOKEN, or name its file with --token-file"
}
