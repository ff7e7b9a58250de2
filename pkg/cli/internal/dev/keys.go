package dev

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

// Keys says where the API keys of a local server are.
type Keys struct {
	// File holds the hashes of all keys (see [httpapi.APIKeys]).
	File string
	// Token holds one key as it is sent, for commands on this machine to read. It
	// lies beside the data file, readable by its owner alone, as that is.
	Token string
	// Links holds the key that signs links to approvals, and the address where they led last.
	Links string
}

// ErrNotOurs says that what lies where the token should was not made here. It may
// be somebody's only copy, so that it is not replaced.
var ErrNotOurs = errors.New("it holds no key of this API")

// KeysBeside returns where the keys for a data file are. In the folder that is ours
// alone they have plain names; elsewhere they are named after the data file, so
// that they are known for what they are, and meet nobody else's.
func KeysBeside(data string) Keys {
	dir, whole := filepath.Dir(data), data
	if abs, err := filepath.Abs(data); err == nil {
		whole = abs // the same file from every folder
	}
	if filepath.Base(filepath.Dir(whole)) == filepath.Dir(app.DefaultData) {
		return Keys{File: filepath.Join(dir, "api-keys"), Token: filepath.Join(dir, "token"), Links: filepath.Join(dir, "link-key")}
	}
	return Keys{File: data + ".api-keys", Token: data + ".token", Links: data + ".link-key"}
}

// Key is the key that is in Keys.Token.
type Key struct {
	Text string
	// Fresh says that it was made just now.
	Fresh bool
}

// open returns the authenticator of the keys, and the key in the token file. Where
// that is missing, or not valid any more, a new one is made for who.
func (k Keys) open(who string) (httpapi.Authenticator, Key, error) {
	private.Tidy(k.Token) // a start that was killed may have left a key there
	text, err := readToken(k.Token)
	if err != nil {
		return nil, Key{}, err
	}
	authenticate, err := httpapi.APIKeys(k.File)
	switch {
	case err == nil:
		if valid(authenticate, text) {
			return authenticate, Key{Text: text}, nil
		}
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, httpapi.ErrNoKeys):
		return nil, Key{}, err
	}
	text, err = httpapi.NewAPIKey(k.File, oneWord(who), "")
	if err != nil {
		return nil, Key{}, err
	}
	if err := private.Write(k.Token, []byte(text+"\n")); err != nil {
		return nil, Key{}, fmt.Errorf("API key: %w", err)
	}
	authenticate, err = httpapi.APIKeys(k.File)
	return authenticate, Key{Text: text, Fresh: true}, err
}

// valid asks the authenticator itself, as a request would.
func valid(authenticate httpapi.Authenticator, text string) bool {
	if text == "" {
		return false
	}
	_, err := authenticate(asked(text))
	return err == nil
}

// asked is a request that brings a key.
func asked(text string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": {"Bearer " + text}}}
}

// oneWord returns a name as the key file takes it.
func oneWord(who string) string {
	if word := strings.Join(strings.Fields(who), "_"); word != "" {
		return word
	}
	return "unknown"
}

// tokenPrefix begins every key that [httpapi.NewAPIKey] makes.
const tokenPrefix = "adj_"

// maxToken is more than a key is long, with the white space around it.
const maxToken = 4 << 10

// readToken returns the key in a file; "" if there is no file, or nothing in it.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("API key: %w", err)
	case !info.Mode().IsRegular():
		return "", notOurs(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("API key: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", fmt.Errorf("API key: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	if text != "" && !strings.HasPrefix(text, tokenPrefix) || len(raw) == maxToken {
		return "", notOurs(path)
	}
	switch err := owned.Secret(f); {
	case errors.Is(err, owned.ErrOpen):
		return "", fmt.Errorf("API key: %w, or remove it: then a new key is made", err)
	case err != nil:
		return "", fmt.Errorf("API key: %w", err)
	}
	return text, nil
}

func notOurs(path string) error {
	return fmt.Errorf("API key: %s: %w: move it away, or use another --data", path, ErrNotOurs)
}
