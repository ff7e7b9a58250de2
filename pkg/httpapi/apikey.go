package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/apikey"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/roles"
)

// Faults of a file of API keys.
var (
	// ErrKeyFile: the file does not say what it should.
	ErrKeyFile = apikey.ErrKeyFile
	// ErrNoKeys: the file is as it should be, with no key in it.
	ErrNoKeys = apikey.ErrNoKeys
)

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
	if _, err := apikey.Read(path); err != nil {
		return nil, err
	}
	return func(r *http.Request) (Caller, error) {
		token, err := bearer(r)
		if err != nil {
			return Caller{}, err
		}
		key, found, err := apikey.Find(path, token)
		if err != nil {
			// Nobody is let in, and it is not the caller's fault. Which line it is stands
			// in the log alone: who asks is nobody that is known.
			return Caller{}, fmt.Errorf("%w: %w", refuse(codes.KeysUnreadable, "the server's file of keys cannot be read, so that nobody is let in; its log says why"), err)
		}
		if !found {
			return Caller{}, fmt.Errorf("%w: the API key is not one of this server's", ErrUnauthenticated)
		}
		return Caller{Tenant: key.Tenant, Who: key.Who, Roles: key.Roles}, nil
	}, nil
}

// NewAPIKey makes a key of chance for somebody and adds its hash to a file of
// keys, which is made, readable by its owner alone, if it is not there. It returns
// the key, which is nowhere else: show it or keep it, now. An empty tenant means
// [session.DefaultTenant].
func NewAPIKey(path, who, tenant string) (key string, err error) {
	return apikey.New(path, who, tenant)
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

// ParseRoles reads the roles of a caller: words with commas or spaces between, of letters, digits and
// _ . : / @ + = -. Where one of them is anything else there are none, and the error says so.
func ParseRoles(text string) ([]string, error) { return roles.Parse(text) }

// CheckRoles returns roles, each once; where one of them is no role there are none, and the error
// says so.
func CheckRoles(names []string) ([]string, error) { return roles.Check(names) }
