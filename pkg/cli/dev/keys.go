package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/adjourn/adjourn/pkg/httpapi"
)

// Keys says where the API keys of a local server are.
type Keys struct {
	// File holds the hashes of all keys (see [httpapi.APIKeys]).
	File string
	// Token holds one key as it is sent, for commands on this machine to read. It
	// lies beside the data file, readable by its owner alone, as that is.
	Token string
}

// KeysBeside returns where the keys for a data file are.
func KeysBeside(data string) Keys {
	dir := filepath.Dir(data)
	return Keys{File: filepath.Join(dir, "api-keys"), Token: filepath.Join(dir, "token")}
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
	if err := writePrivate(k.Token, text); err != nil {
		return nil, Key{}, err
	}
	authenticate, err = httpapi.APIKeys(k.File)
	return authenticate, Key{Text: text, Fresh: true}, err
}

// valid asks the authenticator itself, as a request would.
func valid(authenticate httpapi.Authenticator, text string) bool {
	if text == "" {
		return false
	}
	_, err := authenticate(&http.Request{Header: http.Header{"Authorization": {"Bearer " + text}}})
	return err == nil
}

// oneWord returns a name as the key file takes it.
func oneWord(who string) string {
	if word := strings.Join(strings.Fields(who), "_"); word != "" {
		return word
	}
	return "unknown"
}

// readToken returns the key in a file; "" if there is no file.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("API key: %w", err)
	case goruntime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%w: chmod 600 %s, or remove it: then a new key is made", httpapi.ErrKeyFileOpen, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("API key: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writePrivate puts a file in place whole, readable by its owner alone.
func writePrivate(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("API key: %w", err)
	}
	_, err = f.WriteString(text + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("API key: %w", err), os.Remove(f.Name()))
	}
	return nil
}
