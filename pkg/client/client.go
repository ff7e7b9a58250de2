// Package client speaks the HTTP API of an Adjourn server, or of a handler in this process.
//
// Each method is one route. A request that failed in a way that may pass is repeated: one
// that changes something carries an idempotency key, so that it counts once, even if its
// answer was lost. See [Over] for a handler in this process.
package client

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// The errors that callers branch on beside [*Error].
var (
	// ErrInvalidConfig says that a client cannot be made of its configuration.
	ErrInvalidConfig = errors.New("invalid client configuration")
	// ErrUnreachable says that no answer came: no connection, or it broke.
	ErrUnreachable = errors.New("the server cannot be reached")
	// ErrRedirect says that the server sent the client elsewhere. It does not
	// follow: a token is for the host it was given for.
	ErrRedirect = errors.New("redirects are not followed")
	// ErrTooLarge says that an answer is larger than Config.MaxResponse.
	ErrTooLarge = errors.New("the answer is too large")
	// ErrScheme says that the server speaks http where https was asked, or the
	// other way round.
	ErrScheme = errors.New("http and https are mixed up")
	// ErrNotSent says, beside [ErrUnreachable], that no try came through to anybody:
	// the server surely knows nothing of the request.
	ErrNotSent = errors.New("nothing was sent")
	// ErrNotAdjourn says that what answered does not speak this API.
	ErrNotAdjourn = errors.New("this is not the API of an Adjourn server")
)

// Config says which server to speak to, and how.
type Config struct {
	// URL is where the API begins, such as http://127.0.0.1:8420 or
	// https://example.execute-api.eu-west-1.amazonaws.com/prod. Required.
	URL string
	// Token is sent as Authorization: Bearer; empty means none.
	Token string
	// AllowPlainHTTP lets the token travel unencrypted to a host that is not this machine.
	AllowPlainHTTP bool
	// HTTP sends the requests; nil means a client of our own. Redirects are not
	// followed, whatever it says of them. Its Transport, if it has one, chooses the
	// proxy; ours uses what the environment says, and none for this machine.
	HTTP *http.Client
	// Timeout of one attempt, beside what the server was asked to wait; 0 means 30 s.
	Timeout time.Duration
	// Tries is how often a request is sent at most; 0 means 5.
	Tries int
	// MaxResponse is the largest answer that is read, in bytes; 0 means 64 MiB.
	MaxResponse int64
	// UserAgent names the program; empty means adjourn-client.
	UserAgent string
}

// Client speaks to one server. It is safe for concurrent use.
type Client struct {
	cfg  Config // without the token: printing a client must not print it
	base *url.URL
	http *http.Client
	// authorize puts the token on a request; scrub takes it out of a text.
	authorize func(http.Header)
	scrub     func(string) string
	// named says that there is a token.
	named bool
	// inProcess says that a handler is called, and nothing can be lost on the way.
	inProcess bool
}

// New checks the configuration and returns a client; it sends nothing. Errors
// wrap [ErrInvalidConfig] and never hold the token.
func New(cfg Config) (*Client, error) {
	base, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	token := cfg.Token
	cfg.Token = ""
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("%w: the token holds a space or another character that no token has", ErrInvalidConfig)
	}
	if token != "" && base.Scheme == "http" && !loopback(base.Hostname()) && !cfg.AllowPlainHTTP {
		return nil, fmt.Errorf("%w: %s is not this machine and not encrypted: the token would be read on the way. Use https", ErrInvalidConfig, base.Host)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Tries <= 0 {
		cfg.Tries = 5
	}
	if cfg.MaxResponse <= 0 {
		cfg.MaxResponse = 64 << 20
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "adjourn-client"
	}
	c := &Client{
		cfg: cfg, base: base, http: newHTTP(cfg.HTTP),
		authorize: func(http.Header) {}, scrub: func(text string) string { return text }, named: token != "",
	}
	if token != "" {
		c.authorize = func(h http.Header) { h.Set("Authorization", "Bearer "+token) }
		c.scrub = func(text string) string { return strings.ReplaceAll(text, token, "[token]") }
	}
	return c, nil
}

// URL returns where the API begins. It holds no secret.
func (c *Client) URL() string { return c.base.String() }

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The parser's words quote the URL, which may hold a password.
		return nil, fmt.Errorf("%w: the URL cannot be read; write it as https://host or http://127.0.0.1:8420", ErrInvalidConfig)
	case u.User != nil:
		return nil, fmt.Errorf("%w: the URL holds a name or a password; leave them out", ErrInvalidConfig)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%w: URL %q: write it as https://host or http://127.0.0.1:8420", ErrInvalidConfig, text)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: URL %q has something behind a ? or #, which belongs to no API", ErrInvalidConfig, text)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// newHTTP returns a client that follows no redirect.
func newHTTP(given *http.Client) *http.Client {
	var own http.Client
	if given != nil {
		own = *given
	} else {
		dialer := &net.Dialer{Timeout: 10 * time.Second}
		own.Transport = &http.Transport{
			Proxy: notHere(http.ProxyFromEnvironment), DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 8,
		}
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// notHere uses no proxy for this machine, by whatever name it is called: the token
// would go to the proxy unencrypted. The environment's rule knows fewer names.
func notHere(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if loopback(r.URL.Hostname()) {
			return nil, nil //nolint:nilnil // what net/http takes for no proxy
		}
		return proxy(r)
	}
}

// Close gives idle connections back. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// newKey returns an idempotency key of 128 random bits.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends when there is no randomness
	return "go-" + base64.RawURLEncoding.EncodeToString(b[:])
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
