// Package apikey keeps the keys of the local server: a file with the hash of each, and whose it is.
package apikey

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/roles"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Faults of a file of API keys.
var (
	// ErrKeyFile: the file does not say what it should.
	ErrKeyFile = errors.New("not a file of API keys")
	// ErrNoKeys: the file is as it should be, with no key in it.
	ErrNoKeys = errors.New("there is no key in it")
)

const (
	keyPrefix  = "adj_"
	hashPrefix = "sha256:"
	// keyBytes of chance: so much that a hash without salt cannot be searched.
	keyBytes = 32
)

const keyFileHeader = `# Keys of the HTTP API of Adjourn, one a line: sha256:<hash of the key> <who> [<tenant>] [roles=<role>,<role>]
# The keys themselves are not in here. A key is valid as long as its line is here; the server looks at every request.
# To make one for somebody called bob, paste in this folder:
#   KEY=adj_$(openssl rand -hex 32); echo "sha256:$(printf %%s "$KEY" | openssl dgst -sha256 -r | cut -c1-64) bob" >> %s; echo "$KEY"
`

// Key is one line of the file.
type Key struct {
	hash [sha256.Size]byte
	// Who has the key, in which tenant, with which roles.
	Who    string
	Tenant string
	Roles  []string
}

// Find returns whose a token is by the file at path; false where it is nobody's. A file without a key is
// nobody's, too.
func Find(path, token string) (Key, bool, error) {
	keys, err := Read(path)
	if err != nil && !errors.Is(err, ErrNoKeys) {
		return Key{}, false, err
	}
	given := sha256.Sum256([]byte(token))
	found := -1
	for i := range keys { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare(given[:], keys[i].hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Key{}, false, nil
	}
	return keys[found], true, nil
}

// Read returns the keys of a file. It is refused where others may read or write it, where it is
// neither this user's nor root's, and with [ErrKeyFile] where it says anything else.
func Read(path string) ([]Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("API keys: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := owned.Secret(f); err != nil {
		return nil, fmt.Errorf("API keys: %w", err)
	}
	keys, err := parseKeys(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

func parseKeys(r io.Reader) ([]Key, error) {
	var keys []Key
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := parseKey(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrKeyFile, n, err)
		}
		for _, other := range keys {
			if other.hash == key.hash {
				return nil, fmt.Errorf("%w: line %d: the key is there twice", ErrKeyFile, n)
			}
		}
		keys = append(keys, key)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, ErrNoKeys)
	}
	return keys, nil
}

// parseKey reads the words of a line. What it refuses it does not repeat: it may
// be a key.
func parseKey(words []string) (Key, error) {
	key := Key{Tenant: session.DefaultTenant}
	text, hashed := strings.CutPrefix(words[0], hashPrefix)
	sum, err := hex.DecodeString(text)
	switch {
	case strings.HasPrefix(words[0], keyPrefix):
		return key, errors.New("this is a key; the file holds hashes: sha256:<the key's SHA-256 in hex>")
	case !hashed || err != nil || len(sum) != sha256.Size:
		return key, errors.New("it does not begin with sha256: and 64 hexadecimal digits")
	case len(words) < 2:
		return key, errors.New("it does not say whose key this is")
	}
	if names, ok := strings.CutPrefix(words[len(words)-1], "roles="); ok && len(words) > 2 {
		if key.Roles, err = roles.Parse(names); err != nil {
			return key, err
		}
		words = words[:len(words)-1]
	}
	if len(words) > 3 {
		return key, errors.New("there is something after the tenant; who is one word, and so is roles=<role>,<role>")
	}
	copy(key.hash[:], sum)
	key.Who = words[1]
	if len(words) == 3 {
		key.Tenant = words[2]
	}
	return key, store.ValidateTenant(key.Tenant)
}

// New makes a key of chance for somebody and adds its hash to a file of
// keys, which is made, readable by its owner alone, if it is not there. It returns
// the key, which is nowhere else: show it or keep it, now. An empty tenant means
// [session.DefaultTenant].
func New(path, who, tenant string) (key string, err error) {
	if tenant == "" {
		tenant = session.DefaultTenant
	}
	if err := store.ValidateTenant(tenant); err != nil {
		return "", fmt.Errorf("new API key: %w", err)
	}
	if who == "" || strings.Join(strings.Fields(who), "") != who {
		return "", fmt.Errorf("new API key: who is one word, not %q", who)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", fmt.Errorf("new API key: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := owned.Secret(f); err != nil {
		return "", fmt.Errorf("new API key: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("new API key: %w", err)
	}
	var chance [keyBytes]byte
	if _, err := rand.Read(chance[:]); err != nil { //nolint:forbidigo // a key is chance; one that a caller hands in could be guessed
		return "", fmt.Errorf("new API key: %w", err)
	}
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(chance[:])
	line := fmt.Sprintf("%s%x %s %s\n", hashPrefix, sha256.Sum256([]byte(key)), who, tenant)
	if info.Size() == 0 {
		line = fmt.Sprintf(keyFileHeader, filepath.Base(path)) + line
	} else if _, err := f.ReadAt(chance[:1], info.Size()-1); err == nil && chance[0] != '\n' {
		line = "\n" + line
	}
	if _, err = f.WriteString(line); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return "", fmt.Errorf("new API key: %w", err)
	}
	return key, nil
}
