package dev

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

// maxLinkFile is more than the file of the key of links is long.
const maxLinkFile = 4 << 10

// LinksOf returns what links to the sessions of a data file are made with: the settings, else the key
// beside the file and the address where it was served last. There are none, with no error, where
// neither says so.
func (k Keys) LinksOf(settings app.Settings) (*httpapi.Links, error) {
	stored, url, err := readLinkFile(k.Links)
	if err != nil {
		return nil, err
	}
	cfg := httpapi.LinksConfig{Keys: settings.GrantKeys, URL: settings.PublicURL, SignInURL: settings.SignInURL}
	if cfg.Keys == "" {
		cfg.Keys = stored
	}
	if cfg.URL == "" {
		cfg.URL = url
	}
	if cfg.Keys == "" || cfg.URL == "" {
		return nil, nil //nolint:nilnil // no links are what most data files have
	}
	return httpapi.NewLinks(cfg)
}

// serveLinks is [Keys.LinksOf] for a server at an address, which is kept for the command link. A key
// is made where there is none.
func (k Keys) serveLinks(settings app.Settings, url string) (*httpapi.Links, error) {
	private.Tidy(k.Links)
	stored, before, err := readLinkFile(k.Links)
	if err != nil {
		return nil, err
	}
	if stored == "" {
		secret := make([]byte, grant.MinKey)
		_, _ = rand.Read(secret) // it never fails
		stored = grant.FormatKey("dev", secret)
		before = ""
	}
	if before != url {
		if err := private.Write(k.Links, []byte(stored+"\n"+url+"\n")); err != nil {
			return nil, fmt.Errorf("key of links: %w", err)
		}
	}
	return k.LinksOf(settings)
}

// readLinkFile returns the keys and the address in a file; nothing if there is no file, or an empty one.
func readLinkFile(path string) (keys, url string, err error) {
	info, err := os.Lstat(path) // before it is opened: a pipe would wait for its writer
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("key of links: %w", err)
	case !info.Mode().IsRegular():
		return "", "", fmt.Errorf("key of links: %s is no plain file: move it away", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", "", fmt.Errorf("key of links: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := owned.Secret(f); err != nil {
		return "", "", fmt.Errorf("key of links: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxLinkFile))
	if err != nil {
		return "", "", fmt.Errorf("key of links: %w", err)
	}
	if len(raw) == 0 {
		return "", "", nil
	}
	keys, url, _ = strings.Cut(strings.TrimSpace(string(raw)), "\n")
	_, err = grant.ParseKeys(keys)
	if err == nil {
		err = grant.CheckURL(url)
	}
	if err != nil || keys == "" {
		return "", "", fmt.Errorf("key of links: %s holds none: move it away, and a new one is made", filepath.Base(path))
	}
	return keys, url, nil
}

// Link returns the address of a link by which whoever the server's own key is of decides an approval.
func (s *Server) Link(ctx context.Context, key session.Key, wait string) (string, error) {
	made, err := s.links.Make(ctx, s.cfg.App.Runtime, httpapi.LinkParams{Key: key, Wait: wait, Recipient: s.who, Now: s.cfg.Now()})
	return made.URL, err
}
