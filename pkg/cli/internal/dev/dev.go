// Package dev is the server on a laptop: the HTTP API in front of the embedded engine, with the worker of its chain.
package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// What a server is refused with before it serves anything.
var (
	// ErrAddress: the address cannot be listened on.
	ErrAddress = errors.New("cannot serve there")
	// ErrInUse: something listens there already.
	ErrInUse = errors.New("the address is in use")
	// ErrNotLoopback: other machines could reach the address, and nobody said that they may.
	ErrNotLoopback = errors.New("other machines could reach that address")
)

// sweepEvery is how often deadlines and lost messages are looked after.
const sweepEvery = 15 * time.Second

// Config says what to serve, and where.
type Config struct {
	// App is the engine; required. It is not closed.
	App *embedded.App
	// Listener is listened on, if [Bind] was called before; it is closed with the server.
	Listener net.Listener
	// Addr is host:port; port 0 means any free one.
	Addr string
	// AllowRemote also takes an address that other machines can reach.
	AllowRemote bool
	Keys        Keys
	// Who a key is made for, when there is none.
	Who string
	// Concurrency is how many sessions are worked on at once; 0 means 8.
	Concurrency int
	// Grace is how long a request that changes something may take once the server is
	// told to stop; 0 means 5 s.
	Grace time.Duration
	// Log of what goes wrong; nil means none.
	Log *slog.Logger
	// OnRequest is told each request that was answered; nil means nobody.
	OnRequest func(Request)
	// Now is the clock; nil means the machine's.
	Now func() time.Time
}

// Server listens, and serves once it is told to.
type Server struct {
	cfg      Config
	listener net.Listener
	handler  http.Handler
	key      Key
	links    *httpapi.Links
	who      string // whose the key is
}

// Listen opens the keys, making one if there is none, and the address. Errors
// about the address wrap [ErrAddress], [ErrInUse] or [ErrNotLoopback]; nothing is
// made then.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.App == nil {
		return nil, errors.New("dev: App is required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	if cfg.OnRequest == nil {
		cfg.OnRequest = func(Request) {}
	}
	listener, err := cfg.Listener, error(nil)
	if listener == nil {
		if listener, err = Bind(ctx, cfg.Addr, cfg.AllowRemote); err != nil {
			return nil, err
		}
	}
	s := &Server{cfg: cfg, listener: listener}
	authenticate, key, err := cfg.Keys.open(cfg.Who)
	if err == nil {
		s.key = key
		s.links, err = cfg.Keys.serveLinks(cfg.App.Settings, s.URL())
	}
	var own httpapi.Caller
	if err == nil {
		own, err = authenticate(asked(key.Text))
	}
	if err == nil {
		s.who = own.Who
		var slack *httpapi.Slack
		if n := cfg.App.Settings.Notices; n.SlackTakes() {
			slack, err = httpapi.NewSlack(httpapi.SlackConfig{SigningSecret: n.SlackSigningSecret, People: n.SlackPeople, Tenant: n.SlackTenant, SignedIn: n.SlackSignedIn})
		}
		if err == nil {
			s.handler, err = httpapi.New(httpapi.Config{Runtime: cfg.App.Runtime, Authenticate: authenticate, Links: s.links, Slack: slack, Log: cfg.Log, Now: cfg.Now})
		}
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return s, nil
}

// Bind takes an address, so that nothing is made where it cannot be had. Its errors are
// those of [Listen].
func Bind(ctx context.Context, addr string, allowRemote bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: write it as host:port, such as 127.0.0.1:8420", ErrAddress, addr)
	}
	if !allowRemote && !loopback(host) {
		return nil, fmt.Errorf("%w: %q", ErrNotLoopback, addr)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: %s", ErrInUse, addr)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	// What a name stands for is known only now.
	if is, ok := listener.Addr().(*net.TCPAddr); !allowRemote && (!ok || !is.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("%w: %s is %s", ErrNotLoopback, addr, listener.Addr()), listener.Close())
	}
	return listener, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// URL returns where the API begins, for callers on this machine.
func (s *Server) URL() string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return "http://" + s.listener.Addr().String()
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Key returns the key commands on this machine can use.
func (s *Server) Key() Key { return s.key }

// Handler returns what answers the requests: the API, and what Slack sends where that is set.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers requests and works on sessions until ctx ends; then it takes no
// more, lets what changes something come to its end, and gives steps back that do
// not. It returns nil after that, and the fault otherwise.
func (s *Server) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	fail := make(chan error, 2)
	wg.Go(func() {
		err := s.cfg.App.Runtime.Work(ctx, s.cfg.App.Queue(), runtime.WorkParams{Concurrency: s.cfg.Concurrency, SweepEvery: sweepEvery})
		if err != nil && ctx.Err() == nil {
			fail <- fmt.Errorf("the worker stopped: %w", err)
			stop(err)
		}
	})
	wg.Go(func() { s.cfg.App.SendNotices(ctx) })
	wg.Go(func() {
		if err := s.answer(ctx); err != nil {
			fail <- fmt.Errorf("the server stopped: %w", err)
			stop(err)
		}
	})
	wg.Wait()
	close(fail)
	var faults []error
	for err := range fail {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// patient is a server that waits for slow callers, but not for ever. A waiting
// answer takes 20 s at most.
func patient(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
	}
}

// answer serves HTTP until ctx ends.
func (s *Server) answer(ctx context.Context) error {
	late, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(runtime.ErrOutOfTime)
	server := patient(s.reporting(endReads(ctx, s.handler)))
	server.BaseContext = func(net.Listener) context.Context { return late }
	server.ErrorLog = slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn)
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	// First what is under way may end, then it is cancelled, then cut off.
	timer := time.AfterFunc(s.cfg.Grace, func() { giveUp(runtime.ErrOutOfTime) }) // with a cause: no client has gone away
	defer timer.Stop()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.cfg.Grace)
	defer cancel()
	if err := server.Shutdown(wait); err != nil {
		return errors.Join(err, server.Close())
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// endReads ends requests that change nothing as soon as the server is told to
// stop: they may be waiting for something that will not happen any more.
func endReads(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			reading, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			r = r.WithContext(reading)
		}
		next.ServeHTTP(w, r)
	})
}
