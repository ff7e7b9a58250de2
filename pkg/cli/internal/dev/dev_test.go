package dev_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

// registry has an agent that says hello, and one that never ends by itself.
func (b *bench) registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{
		{Name: "hello", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
			return agent.Reply{Text: "hello"}, nil
		})},
		{Name: "hang", Planner: agent.PlannerFunc(func(ctx context.Context, _ agent.View) (agent.Reply, error) {
			close(b.hangs)
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		})},
	}})
}

// bench is a folder with an opened engine.
type bench struct {
	t    *testing.T
	data string
	cfg  dev.Config
	// hangs is closed when the agent hang is at work, which it is once.
	hangs chan struct{}

	mu       sync.Mutex
	requests []dev.Request
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, data: filepath.Join(t.TempDir(), "adjourn.db"), hangs: make(chan struct{})}
	a, err := embedded.Open(t.Context(), embedded.Config{Registry: b.registry, Data: b.data, Env: func(string) string { return "" }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	b.cfg = dev.Config{App: a, Addr: "127.0.0.1:0", Keys: dev.KeysBeside(b.data), Who: "ada", OnRequest: func(r dev.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests = append(b.requests, r)
	}}
	return b
}

func (b *bench) listen() *dev.Server {
	b.t.Helper()
	s, err := dev.Listen(b.t.Context(), b.cfg)
	require.NoError(b.t, err)
	return s
}

// serve serves until stop, which returns how that ended.
func (b *bench) serve() (c *client.Client, stop func() error) {
	b.t.Helper()
	s := b.listen()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	b.t.Cleanup(cancel)
	c, err := client.New(client.Config{URL: s.URL(), Token: s.Key().Text})
	require.NoError(b.t, err)
	b.t.Cleanup(c.Close)
	return c, func() error {
		b.t.Helper()
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(2 * time.Minute):
			require.FailNow(b.t, "it does not stop")
			return nil
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c, stop := b.serve()
	started, err := c.Start(t.Context(), client.StartParams{Request: client.StartRequest{Agent: "hello", Input: client.Text("hi")}, Wait: 10 * time.Second})
	require.NoError(t, err)
	require.Equal(t, "hello", started.Session.Text, "the worker of the same process did it")
	stranger, err := client.New(client.Config{URL: c.URL()})
	require.NoError(t, err)
	_, err = stranger.Inbox(t.Context(), client.InboxParams{})
	require.Error(t, err)
	stranger.Close()
	require.NoError(t, stop())
	require.Len(t, b.requests, 2)
	require.Equal(t, dev.Request{Method: http.MethodPost, Path: "/sessions", Status: http.StatusOK, Took: b.requests[0].Took}, b.requests[0])
	require.Equal(t, http.StatusUnauthorized, b.requests[1].Status)
	var dialer net.Dialer
	_, err = dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(c.URL(), "http://"))
	require.Error(t, err)
}

// TestDisconnect has a client that waits go away, and a server stop beside one: only the first
// cancels the task.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server stops=%t", stops), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.cfg.Grace = time.Millisecond
			c, stop := b.serve()
			once, err := client.New(client.Config{URL: c.URL(), Tries: 1, Token: b.token()})
			require.NoError(t, err)
			defer once.Close()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			left := make(chan struct{})
			go func() {
				defer close(left)
				_, _ = once.Start(ctx, client.StartParams{
					Request: client.StartRequest{SessionID: "s", Agent: "hang", Input: client.Text("hi")}, Wait: 20 * time.Second, CancelOnDisconnect: true,
				})
			}()
			key := session.Key{Tenant: session.DefaultTenant, ID: "s"}
			status := func() session.Status {
				head, _ := b.cfg.App.Runtime.Head(context.Background(), key)
				return head.Status
			}
			require.Eventually(t, func() bool { return status() == session.StatusRunning }, time.Minute, time.Millisecond)
			if stops {
				_ = stop()
				<-left
				require.Equal(t, session.StatusRunning, status())
				return
			}
			leave()
			require.Eventually(t, func() bool { return status() == session.StatusCancelled }, time.Minute, time.Millisecond)
			require.NoError(t, stop())
		})
	}
}

// TestStop has somebody wait for a session while the server is told to stop.
func TestStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.Grace = time.Hour // what ends, ends without it
	c, stop := b.serve()
	started, err := c.Start(t.Context(), client.StartParams{Request: client.StartRequest{Agent: "hang", Input: client.Text("hi")}})
	require.NoError(t, err)
	followed := make(chan error, 1)
	seen := make(chan struct{})
	once, err := client.New(client.Config{URL: c.URL(), Tries: 1, Token: b.token()})
	require.NoError(t, err)
	go func() {
		var last error
		for _, err := range once.Follow(t.Context(), started.SessionID, 0) {
			if last = err; err == nil {
				close(seen)
			}
		}
		followed <- last
	}()
	<-seen
	<-b.hangs
	require.NoError(t, stop(), "nobody waits for what will not happen")
	require.Error(t, <-followed)
	once.Close()

	// What was under way was given back: it is nobody's, and somebody else can go on.
	head, err := b.cfg.App.Runtime.Head(t.Context(), session.Key{Tenant: session.DefaultTenant, ID: started.SessionID})
	require.NoError(t, err)
	require.Equal(t, session.StatusRunning, head.Status)
	require.False(t, head.Lease.Live(time.Now(), head.StatusSeq, false))
}

func (b *bench) token() string {
	b.t.Helper()
	text, err := os.ReadFile(b.cfg.Keys.Token)
	require.NoError(b.t, err)
	return strings.TrimSpace(string(text))
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for addr, want := range map[string]error{
		"0.0.0.0:0":          dev.ErrNotLoopback,
		":0":                 dev.ErrNotLoopback,
		"[::]:0":             dev.ErrNotLoopback,
		"10.1.2.3:0":         dev.ErrNotLoopback,
		"example.com:0":      dev.ErrNotLoopback,
		"localhost.evil.x:0": dev.ErrNotLoopback,
		"":                   dev.ErrAddress,
		"127.0.0.1":          dev.ErrAddress,
		"127.0.0.1:http:x":   dev.ErrAddress,
		"127.0.0.1:99999":    dev.ErrAddress,
	} {
		cfg := b.cfg
		cfg.Addr = addr
		_, err := dev.Listen(t.Context(), cfg)
		require.ErrorIs(t, err, want, addr)
	}
	require.NoFileExists(t, b.cfg.Keys.File, "no key is made where nothing is served")

	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	cfg := b.cfg
	cfg.Addr = taken.Addr().String()
	_, err = dev.Listen(t.Context(), cfg)
	require.ErrorIs(t, err, dev.ErrInUse)

	cfg.Addr, cfg.AllowRemote = "0.0.0.0:0", true
	s, err := dev.Listen(t.Context(), cfg)
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:[0-9]+$`, s.URL())
	_, err = dev.Listen(t.Context(), dev.Config{})
	require.Error(t, err)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.listen().Key()
	require.True(t, first.Fresh)
	require.Regexp(t, `^adj_`, first.Text)
	for _, path := range []string{b.cfg.Keys.File, b.cfg.Keys.Token} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), path)
	}
	hashes, err := os.ReadFile(b.cfg.Keys.File)
	require.NoError(t, err)
	require.NotContains(t, string(hashes), first.Text)
	require.Contains(t, string(hashes), " ada ")

	require.Equal(t, dev.Key{Text: first.Text}, b.listen().Key(), "it stays the same")

	// Without the token file nobody on this machine would know a key.
	require.NoError(t, os.Remove(b.cfg.Keys.Token))
	second := b.listen().Key()
	require.True(t, second.Fresh)
	require.NotEqual(t, first.Text, second.Text)

	// A key that was made void is not handed out.
	require.NoError(t, os.WriteFile(b.cfg.Keys.File, hashes, 0o600))
	third := b.listen().Key()
	require.True(t, third.Fresh)

	// Who made all keys void gets a new one.
	require.NoError(t, os.WriteFile(b.cfg.Keys.File, []byte("# none\n"), 0o600))
	require.True(t, b.listen().Key().Fresh)

	require.NoError(t, os.Chmod(b.cfg.Keys.Token, 0o644))
	_, err = dev.Listen(t.Context(), b.cfg)
	require.ErrorIs(t, err, owned.ErrOpen)
	require.NoError(t, os.Chmod(b.cfg.Keys.Token, 0o600))
	require.NoError(t, os.Chmod(b.cfg.Keys.File, 0o640))
	_, err = dev.Listen(t.Context(), b.cfg)
	require.ErrorIs(t, err, owned.ErrOpen)
	require.NoError(t, os.Chmod(b.cfg.Keys.File, 0o600))
	require.NoError(t, os.WriteFile(b.cfg.Keys.File, []byte("nonsense\n"), 0o600))
	_, err = dev.Listen(t.Context(), b.cfg)
	require.ErrorIs(t, err, httpapi.ErrKeyFile)

	for who, word := range map[string]string{"Ada Lovelace": " Ada_Lovelace ", "": " unknown "} {
		other := setup(t)
		other.cfg.Who = who
		other.listen()
		hashes, err := os.ReadFile(other.cfg.Keys.File)
		require.NoError(t, err)
		require.Contains(t, string(hashes), word)
	}
}

// TestKeysBeside: only in a folder of ours do files have names that others use too.
func TestKeysBeside(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]dev.Keys{
		".adjourn/adjourn.db":  {File: ".adjourn/api-keys", Token: ".adjourn/token", Links: ".adjourn/link-key"},
		"/a/.adjourn/other.db": {File: "/a/.adjourn/api-keys", Token: "/a/.adjourn/token", Links: "/a/.adjourn/link-key"},
		"try.db":               {File: "try.db.api-keys", Token: "try.db.token", Links: "try.db.link-key"},
		"/a/b/try.db":          {File: "/a/b/try.db.api-keys", Token: "/a/b/try.db.token", Links: "/a/b/try.db.link-key"},
	} {
		require.Equal(t, want, dev.KeysBeside(data), data)
	}
}

// TestKeysBeside_inside: from inside of the folder it is the same keys.
func TestKeysBeside_inside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".adjourn")
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Chdir(dir)
	require.Equal(t, dev.Keys{File: "api-keys", Token: "token", Links: "link-key"}, dev.KeysBeside("adjourn.db"))
}

// TestKeysOfSomebodyElse: what was not made here stays as it is.
func TestKeysOfSomebodyElse(t *testing.T) {
	t.Parallel()
	const theirs = "ghp_somebodys_own\n"
	for _, mode := range []os.FileMode{0o600, 0o644} {
		b := setup(t)
		require.NoError(t, os.WriteFile(b.cfg.Keys.Token, []byte(theirs), mode))
		_, err := dev.Listen(t.Context(), b.cfg)
		require.ErrorIs(t, err, dev.ErrNotOurs)
		require.NotContains(t, err.Error(), "ghp_")
		require.NotContains(t, err.Error(), "remove")
		text, err := os.ReadFile(b.cfg.Keys.Token)
		require.NoError(t, err)
		require.Equal(t, theirs, string(text))
		require.NoFileExists(t, b.cfg.Keys.File)
	}

	b := setup(t)
	require.NoError(t, os.Mkdir(b.cfg.Keys.Token, 0o700))
	_, err := dev.Listen(t.Context(), b.cfg)
	require.ErrorIs(t, err, dev.ErrNotOurs)

	b = setup(t)
	b.listen()
	if os.Chown(b.cfg.Keys.Token, 65534, -1) != nil {
		return // only root can give a file away, or read one that is private
	}
	_, err = dev.Listen(t.Context(), b.cfg)
	require.ErrorIs(t, err, owned.ErrForeign)
}
