package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// firstDelay is the longest wait before the second try; it doubles up to lastDelay.
	firstDelay = 200 * time.Millisecond
	lastDelay  = 5 * time.Second
	// longestRetryAfter is the longest wait a server may ask for; if it asks for
	// more, the caller is told instead.
	longestRetryAfter = 30 * time.Second
	// maxProblem is the largest refusal that is read.
	maxProblem = 1 << 20
)

// request is one call of the API.
type request struct {
	method string
	path   string
	// session the path names, if it names one.
	session string
	query   url.Values
	header  http.Header
	// body is sent as JSON; nil means none.
	body any
	// wait is how long the server was asked to hold the answer back.
	wait time.Duration
	// cancels says that the task is to be cancelled if this side goes away meanwhile.
	cancels bool
}

// send sends a request, repeats it while its failure may pass, and reads the answer into out.
func (c *Client) send(ctx context.Context, r request, out any) error {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
	}
	came := false // an earlier try came through to somebody
	for try := 1; ; try++ {
		err := c.attempt(ctx, r, body, out)
		if err == nil {
			return nil
		}
		if came = came || !noConnection(err); !came {
			err = notSentError{err}
		}
		if cause := ctx.Err(); cause != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.path, cause)
		}
		delay, again := c.delay(err, try)
		if deadline, ok := ctx.Deadline(); again && ok && time.Until(deadline) <= delay {
			again = false // the answer now says more than a deadline later
		}
		if !again {
			return about(r.session, err)
		}
		if cause := pause(ctx, delay); cause != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.path, cause)
		}
	}
}

// delay says whether to try again after an error, and how long to wait before.
func (c *Client) delay(err error, try int) (time.Duration, bool) {
	if try >= c.cfg.Tries || !mayPass(err) {
		return 0, false
	}
	longest := min(firstDelay<<(try-1), lastDelay)
	delay := longest/2 + rand.N(longest/2)
	var refused *Error
	if errors.As(err, &refused) && refused.RetryAfter > 0 {
		if refused.RetryAfter > longestRetryAfter {
			return 0, false
		}
		delay = max(delay, refused.RetryAfter)
	}
	return delay, true
}

// mayPass reports whether a failure may pass. A repeat does no harm: what changes
// something has a key.
func mayPass(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return errors.Is(err, ErrUnreachable)
}

// noConnection reports whether a try failed before anything of it was sent.
func noConnection(err error) bool {
	var op *net.OpError
	return errors.Is(err, ErrUnreachable) && errors.As(err, &op) && op.Op == "dial"
}

// notSentError adds [ErrNotSent] to an error without another word.
type notSentError struct{ error }

func (e notSentError) Unwrap() error   { return e.error }
func (notSentError) Is(err error) bool { return err == ErrNotSent }

// sessionError is a failure of a request about a session.
type sessionError struct {
	id string
	error
}

// SessionID is the session that the request was about.
func (e *sessionError) SessionID() string { return e.id }

func (e *sessionError) Error() string { return "session " + e.id + ": " + e.error.Error() }
func (e *sessionError) Unwrap() error { return e.error }

// about adds the session to an error that does not say it by itself.
func about(id string, err error) error {
	var refused *Error
	if id == "" || errors.As(err, &refused) {
		return err
	}
	return &sessionError{id: id, error: err}
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r request, body []byte, out any) error {
	if !c.inProcess {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout+r.wait)
		defer cancel()
	}
	target := c.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", MediaJSON+", "+MediaProblem)
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	if body != nil {
		req.Header.Set("Content-Type", MediaJSON)
	}
	c.authorize(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(r, err)
	}
	defer func() { _ = resp.Body.Close() }() // what was needed of it has been read
	err = c.read(resp, out)
	if err == nil {
		err = checkAnswer(out, r.session)
	}
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			return err // it speaks for itself
		}
		return fmt.Errorf("%s %s: %w", r.method, target.Redacted(), err)
	}
	return nil
}

// unreachable tells a failure of the network without the words of net/http, which
// repeat the URL.
func (c *Client) unreachable(r request, err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%s %s/%s: %w", r.method, c.base, r.path, c.scheme("http"))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// Of this attempt: the caller's own deadline is told before this error is seen.
		return fmt.Errorf("%s %s/%s: %w: no answer within %s", r.method, c.base, r.path, ErrUnreachable, c.cfg.Timeout+r.wait)
	}
	return fmt.Errorf("%s %s/%s: %w: %w", r.method, c.base, r.path, ErrUnreachable, err)
}

func (c *Client) read(resp *http.Response, out any) error {
	switch {
	case resp.StatusCode >= 400:
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
		if err != nil {
			text = nil // its status says enough
		}
		if c.base.Scheme == "http" && resp.StatusCode == http.StatusBadRequest && httpsOnly.Match(text) {
			return c.scheme("https")
		}
		return newError(resp.StatusCode, resp.Header, text, c)
	case resp.StatusCode >= 300:
		return fmt.Errorf("%w: %d to %s; use that URL if you trust it", ErrRedirect, resp.StatusCode, elsewhere(resp))
	}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != MediaJSON {
		return fmt.Errorf("%w: the answer is %q, not JSON", ErrNotAdjourn, resp.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, c.cfg.MaxResponse+1))
	if err != nil {
		return fmt.Errorf("%w: the answer broke off: %w", ErrUnreachable, err)
	}
	if int64(len(text)) > c.cfg.MaxResponse {
		return fmt.Errorf("%w: over %d bytes", ErrTooLarge, c.cfg.MaxResponse)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAdjourn, err)
	}
	return nil
}

// httpsOnly is what servers answer to http on a port for https: Go's, nginx, Apache.
var httpsOnly = regexp.MustCompile(`(?i)HTTP request (to an HTTPS server|was sent to HTTPS port)|speaking plain HTTP to an SSL`)

// scheme says which scheme the server speaks instead of ours. To give encryption
// up is advised for this machine only.
func (c *Client) scheme(speaks string) error {
	if speaks == "http" && !loopback(c.base.Hostname()) {
		return fmt.Errorf("%w: the server does not speak https there", ErrScheme)
	}
	there := *c.base
	there.Scheme = speaks
	return fmt.Errorf("%w: the server speaks %s; write %s", ErrScheme, speaks, &there)
}

// elsewhere names the host a redirect leads to, and no more of it.
func elsewhere(resp *http.Response) string {
	if u, err := resp.Location(); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return "nowhere"
}

// retryAfter reads how long a server asks to wait: seconds, or a date.
func retryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
