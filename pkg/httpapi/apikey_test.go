package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

func bring(t *testing.T, authorization ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sessions", nil)
	r.Header["Authorization"] = authorization
	return r
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	first, err := httpapi.NewAPIKey(path, "ann", "")
	require.NoError(t, err)
	second, err := httpapi.NewAPIKey(path, "eve", "rival")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Regexp(t, `^adj_[A-Za-z0-9_-]{43}$`, first)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), first)
	require.NotContains(t, string(text), second)
	require.Contains(t, string(text), fmt.Sprintf("sha256:%x ann default\n", sha256.Sum256([]byte(first))))
	require.Contains(t, string(text), `bob" >> keys; echo "$KEY"`, "the file says how to make one more")
	if goruntime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	authenticate, err := httpapi.APIKeys(path)
	require.NoError(t, err)
	caller, err := authenticate(bring(t, "Bearer "+first))
	require.NoError(t, err)
	require.Equal(t, httpapi.Caller{Tenant: session.DefaultTenant, Who: "ann"}, caller)
	caller, err = authenticate(bring(t, "bearer  "+second+" "))
	require.NoError(t, err)
	require.Equal(t, httpapi.Caller{Tenant: "rival", Who: "eve"}, caller)
	for _, wrong := range [][]string{
		nil,
		{""},
		{"Bearer"},
		{"Bearer "},
		{"Basic " + first},
		{first},
		{"Bearer " + first[:20]},
		{"Bearer " + first + "x"},
		{"Bearer " + first, "Bearer " + second},
		{"Bearer sha256:" + fmt.Sprintf("%x", sha256.Sum256([]byte(first)))},
		{"Bearer adj_"},
	} {
		_, err := authenticate(bring(t, wrong...))
		require.ErrorIs(t, err, httpapi.ErrUnauthenticated, wrong)
		require.NotContains(t, err.Error(), first)
	}
}

// TestAPIKeys_whole: a key file in front of the handler.
func TestAPIKeys_whole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	key, err := httpapi.NewAPIKey(path, "ann", "acme")
	require.NoError(t, err)
	authenticate, err := httpapi.APIKeys(path)
	require.NoError(t, err)
	w := newWorld(t, change{api: func(cfg *httpapi.Config) { cfg.Authenticate = authenticate }})
	require.Equal(t, http.StatusOK, w.send(key, http.MethodGet, "/sessions", "").Code)
	out := w.send("", http.MethodGet, "/sessions", "")
	require.Equal(t, http.StatusUnauthorized, out.Code)
	require.Contains(t, problem(t, out).Detail, "Authorization: Bearer")
	require.Equal(t, http.StatusUnauthorized, w.send(key+"x", http.MethodGet, "/sessions", "").Code)
	require.NotContains(t, w.log.String(), key)

	// One bad line closes the server; only its log says which.
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, "adj_pasted bob\n"...), 0o600))
	for _, token := range []string{key, key + "x"} {
		out = w.send(token, http.MethodGet, "/sessions", "")
		require.Equal(t, http.StatusServiceUnavailable, out.Code)
		p := problem(t, out)
		require.Equal(t, codes.KeysUnreadable, p.Code)
		require.Equal(t, "the server's file of keys cannot be read, so that nobody is let in; its log says why", p.Detail)
	}
	require.Contains(t, w.log.String(), path+": not a file of API keys: line "+strconv.Itoa(bytes.Count(text, []byte("\n"))+1)+": this is a key")
	require.NotContains(t, w.log.String(), "adj_pasted")
}

// TestAPIKeys_changed: what is done to the file counts at once.
func TestAPIKeys_changed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	ann, err := httpapi.NewAPIKey(path, "ann", "")
	require.NoError(t, err)
	authenticate, err := httpapi.APIKeys(path)
	require.NoError(t, err)
	who := func(key string) (string, error) {
		caller, err := authenticate(bring(t, "Bearer "+key))
		return caller.Who, err
	}
	bob, err := httpapi.NewAPIKey(path, "bob", "")
	require.NoError(t, err)
	for key, want := range map[string]string{ann: "ann", bob: "bob"} {
		name, err := who(key)
		require.NoError(t, err)
		require.Equal(t, want, name)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(fmt.Sprintf("sha256:%x bob\n", sha256.Sum256([]byte(bob))))
	_, err = who(ann)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "its line is gone")
	_, err = who(bob)
	require.NoError(t, err)
	write("# nobody\n")
	_, err = who(bob)
	require.ErrorIs(t, err, httpapi.ErrUnauthenticated, "the last one is gone")
	_, err = httpapi.APIKeys(path)
	require.ErrorIs(t, err, httpapi.ErrNoKeys)

	// As long as it cannot be read nobody is let in, and it is not the caller's fault.
	for name, spoil := range map[string]func(){
		"nonsense": func() { write(string(text) + "nonsense\n") },
		"gone":     func() { require.NoError(t, os.Remove(path)) },
	} {
		spoil()
		_, err = who(bob)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, httpapi.ErrUnauthenticated, name)
		write(string(text))
		_, err = who(bob)
		require.NoError(t, err, name)
	}
}

// TestAPIKeys_roles: a line may end with the roles of whose key it is.
func TestAPIKeys_roles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	line := func(key, rest string) string { return fmt.Sprintf("sha256:%x %s\n", sha256.Sum256([]byte(key)), rest) }
	require.NoError(t, os.WriteFile(path, []byte(line("adj_a", "ann roles=finance,chief,finance")+line("adj_b", "bob acme roles=")+line("adj_c", "roles=finance")), 0o600))
	authenticate, err := httpapi.APIKeys(path)
	require.NoError(t, err)
	for key, want := range map[string]httpapi.Caller{
		"adj_a": {Tenant: session.DefaultTenant, Who: "ann", Roles: []string{"finance", "chief"}},
		"adj_b": {Tenant: "acme", Who: "bob"},
		"adj_c": {Tenant: session.DefaultTenant, Who: "roles=finance"},
	} {
		caller, err := authenticate(bring(t, "Bearer "+key))
		require.NoError(t, err)
		require.Equal(t, want, caller)
	}
}

// TestAPIKeys_foreign: root reads every file, and still believes only its own.
func TestAPIKeys_foreign(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	_, err := httpapi.NewAPIKey(path, "mallory", "")
	require.NoError(t, err)
	if os.Chown(path, 65534, -1) != nil {
		return // only root can give a file away, or read one that is private
	}
	_, err = httpapi.APIKeys(path)
	require.ErrorIs(t, err, owned.ErrForeign)
	_, err = httpapi.NewAPIKey(path, "ann", "")
	require.ErrorIs(t, err, owned.ErrForeign)
}

func TestAPIKeys_files(t *testing.T) {
	t.Parallel()
	hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("adj_x")))
	other := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("adj_y")))
	for name, c := range map[string]struct{ text, fault string }{
		"comments and blanks":       {"# keys\n\n  " + hash + "   ann\t\n" + other + " bob acme\r\n", ""},
		"no end of the last line":   {hash + " ann", ""},
		"empty":                     {"", "no key"},
		"comments alone":            {"# nothing\n", "no key"},
		"a key itself":              {"adj_secret ann\n", "line 1: this is a key"},
		"no hash":                   {"# x\nsecret ann\n", "line 2: it does not begin with sha256:"},
		"half a hash":               {hash[:30] + " ann\n", "64 hexadecimal digits"},
		"too much of a hash":        {hash + "00 ann\n", "64 hexadecimal digits"},
		"nobody's":                  {hash + "\n", "whose key"},
		"more than a name":          {hash + " ann of acme\n", "tenant"},
		"words after the tenant":    {hash + " ann acme inc\n", "after the tenant"},
		"a tenant that is none":     {hash + " ann a/b\n", "invalid id"},
		"twice":                     {hash + " ann\n" + hash + " bob\n", "line 2: the key is there twice"},
		"a line that does not end":  {strings.Repeat("x", 1<<20), "too long"},
		"not a text":                {"\x00\x01\x02", "sha256:"},
		"roles":                     {hash + " ann roles=finance\n" + other + " bob acme roles=a,b\n", ""},
		"a role that is none":       {hash + " ann acme roles=a,b!\n", "is no role"},
		"roles in two words":        {hash + " ann acme roles=a, b\n", "after the tenant"},
		"roles twice":               {hash + " ann roles=a roles=b\n", "invalid id"},
		"a tenant, and in it a tab": {hash + " ann acme\tinc\n", "after the tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			authenticate, err := httpapi.APIKeys(path)
			if c.fault == "" {
				require.NoError(t, err)
				caller, err := authenticate(bring(t, "Bearer adj_x"))
				require.NoError(t, err)
				require.Equal(t, "ann", caller.Who)
				return
			}
			if name == "more than a name" {
				require.Error(t, err)
				return
			}
			require.ErrorIs(t, err, httpapi.ErrKeyFile)
			require.ErrorContains(t, err, c.fault)
			require.NotContains(t, err.Error(), "secret", "what was refused may be a key")
		})
	}
	_, err := httpapi.APIKeys(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = httpapi.APIKeys(t.TempDir())
	require.Error(t, err)
}

func TestAPIKeys_open_to_others(t *testing.T) {
	t.Parallel()
	if goruntime.GOOS == "windows" {
		return // a mode says nothing there
	}
	path := filepath.Join(t.TempDir(), "keys")
	_, err := httpapi.NewAPIKey(path, "ann", "")
	require.NoError(t, err)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o666} {
		require.NoError(t, os.Chmod(path, mode))
		_, err = httpapi.APIKeys(path)
		require.ErrorIs(t, err, owned.ErrOpen, mode)
		require.ErrorContains(t, err, "chmod 600")
		_, err = httpapi.NewAPIKey(path, "bob", "")
		require.ErrorIs(t, err, owned.ErrOpen, mode)
	}
	require.NoError(t, os.Chmod(path, 0o400))
	_, err = httpapi.APIKeys(path)
	require.NoError(t, err)
}

func TestNewAPIKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	for _, who := range []string{"", "two words", "a\nb", " ann"} {
		_, err := httpapi.NewAPIKey(path, who, "")
		require.ErrorContains(t, err, "one word", "%q", who)
	}
	_, err := httpapi.NewAPIKey(path, "ann", "a b")
	require.ErrorIs(t, err, session.ErrInvalidID)
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing was made")
	_, err = httpapi.NewAPIKey(filepath.Join(path, "no", "folder"), "ann", "")
	require.Error(t, err)

	// A file whose last line has no end is not run into.
	hash := fmt.Sprintf("sha256:%x ann", sha256.Sum256([]byte("adj_x")))
	require.NoError(t, os.WriteFile(path, []byte(hash), 0o600))
	key, err := httpapi.NewAPIKey(path, "bob", "")
	require.NoError(t, err)
	authenticate, err := httpapi.APIKeys(path)
	require.NoError(t, err)
	for token, who := range map[string]string{"adj_x": "ann", key: "bob"} {
		caller, err := authenticate(bring(t, "Bearer "+token))
		require.NoError(t, err)
		require.Equal(t, who, caller.Who)
	}

	// Many at once make many keys.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _, _ = httpapi.NewAPIKey(path, "many", "") })
	}
	wg.Wait()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 8, strings.Count(string(text), " many default\n"))
	_, err = httpapi.APIKeys(path)
	require.NoError(t, err)
}
