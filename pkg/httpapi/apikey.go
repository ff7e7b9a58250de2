package httpapi

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
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/session"
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

// apiKey is one line of the file.
type apiKey struct {
	hash   [sha256.Size]byte
	who    string
	tenant string
	roles  []string
}

// APIKeys returns the authenticator of the local server: requests bring
// "Authorization: Bearer adj_…", and the file says whose key that is. The file is
// read at every request: a key is valid once its line is there, void once it is
// gone, and as long as the file cannot be read nobody is let in: the answer is 503,
// and the reason is in the log.
//
// A line of it is
//
//	sha256:<the key's SHA-256 in hex> <who> [<tenant>] [roles=<role>,<role>]
//
// with the tenant [session.DefaultTenant] if there is none. Empty lines, and
// those that begin with #, are left out. A file that others may read or write is
// refused, and one that is neither this user's nor root's (neither on Windows, where
// a mode does not tell). One with a line that is anything else is refused with
// [ErrKeyFile], and one without any key with [ErrNoKeys] as well.
func APIKeys(path string) (Authenticator, error) {
	if _, err := readKeys(path); err != nil {
		return nil, err
	}
	return func(r *http.Request) (Caller, error) {
		token, err := bearer(r)
		if err != nil {
			return Caller{}, err
		}
		keys, err := readKeys(path)
		if err != nil && !errors.Is(err, ErrNoKeys) {
			// Nobody is let in, and it is not the caller's fault. Which line it is stands
			// in the log alone: who asks is nobody that is known.
			return Caller{}, fmt.Errorf("%w: %w", refuse(codes.KeysUnreadable, "the server's file of keys cannot be read, so that nobody is let in; its log says why"), err)
		}
		given := sha256.Sum256([]byte(token))
		found := -1
		for i := range keys { // all of them, so that the time tells nothing
			if subtle.ConstantTimeCompare(given[:], keys[i].hash[:]) == 1 {
				found = i
			}
		}
		if found < 0 {
			return Caller{}, fmt.Errorf("%w: the API key is not one of this server's", ErrUnauthenticated)
		}
		return Caller{Tenant: keys[found].tenant, Who: keys[found].who, Roles: keys[found].roles}, nil
	}, nil
}

func readKeys(path string) ([]apiKey, error) {
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

// bearer returns the token of a request.
func bearer(r *http.Request) (string, error) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return "", fmt.Errorf("%w: send one header Authorization: Bearer <API key>", ErrUnauthenticated)
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", fmt.Errorf("%w: send one header Authorization: Bearer <API key>", ErrUnauthenticated)
	}
	return token, nil
}

func parseKeys(r io.Reader) ([]apiKey, error) {
	var keys []apiKey
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
func parseKey(words []string) (apiKey, error) {
	key := apiKey{tenant: session.DefaultTenant}
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
	if roles, ok := strings.CutPrefix(words[len(words)-1], "roles="); ok && len(words) > 2 {
		if key.roles, err = ParseRoles(roles); err != nil {
			return key, err
		}
		words = words[:len(words)-1]
	}
	if len(words) > 3 {
		return key, errors.New("there is something after the tenant; who is one word, and so is roles=<role>,<role>")
	}
	copy(key.hash[:], sum)
	key.who = words[1]
	if len(words) == 3 {
		key.tenant = words[2]
	}
	return key, checkTenant(key.tenant)
}

func checkTenant(tenant string) error {
	return (session.Key{Tenant: tenant, ID: "any"}).Validate()
}

// NewAPIKey makes a key of chance for somebody and adds its hash to a file of
// keys, which is made, readable by its owner alone, if it is not there. It returns
// the key, which is nowhere else: show it or keep it, now. An empty tenant means
// [session.DefaultTenant].
func NewAPIKey(path, who, tenant string) (key string, err error) {
	if tenant == "" {
		tenant = session.DefaultTenant
	}
	if err := checkTenant(tenant); err != nil {
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
