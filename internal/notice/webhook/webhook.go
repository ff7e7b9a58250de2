// Package webhook sends notices to one address, signed as Standard Webhooks says.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/notice"
)

// Name of the channel.
const Name = "webhook"

const (
	// maxAnswer is how much of an answer is read, which nobody needs.
	maxAnswer = 4 << 10
	// dialTime and answerTime bound the connection and the answer.
	dialTime   = 5 * time.Second
	answerTime = 15 * time.Second
	// The key of a signature has 24 to 64 bytes, as the specification says.
	minKey, maxKey = 24, 64
	secretPrefix   = "whsec_"
)

// Config says where to, and how. URL, Secret and Now are required.
type Config struct {
	URL string
	// Secret is whsec_ and the key in base64.
	Secret string
	// Arguments has the arguments of calls sent as well.
	Arguments bool
	// Links has links sent by which whoever reads them decides.
	Links bool
	// AllowHTTP allows an address that is not encrypted, AllowPrivate one of this machine or of a
	// private network. An address of a link alone, as that of a cloud's metadata, is never allowed.
	AllowHTTP, AllowPrivate bool
	Now                     func() time.Time
}

// Channel sends to a webhook.
type Channel struct {
	cfg    Config
	key    []byte
	client *http.Client
}

var _ notice.Channel = (*Channel)(nil)

// New checks the configuration. Its errors name no secret.
func New(cfg Config) (*Channel, error) {
	if err := CheckURL(cfg.URL, cfg.AllowHTTP); err != nil {
		return nil, err
	}
	key, err := ParseSecret(cfg.Secret)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTime, Control: guard(cfg.AllowPrivate)}
	return &Channel{cfg: cfg, key: key, client: &http.Client{
		Timeout: answerTime,
		// A redirect would lead to an address that nobody has chosen.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// Without a proxy, which would look names up by itself.
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: answerTime,
			MaxResponseHeaderBytes: 16 << 10, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		},
	}}, nil
}

// CheckURL returns an error unless notices may be sent to an address.
func CheckURL(address string, allowHTTP bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("use an address that begins with https://")
	case u.Scheme == "http" && !allowHTTP:
		return errors.New("it is not encrypted: use https://, or set ADJOURN_WEBHOOK_ALLOW_HTTP=true")
	case u.User != nil:
		return errors.New("leave the user out of the address: the signature tells who sends")
	}
	return nil
}

// ParseSecret returns the key of a secret.
func ParseSecret(secret string) ([]byte, error) {
	encoded, is := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !is || err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("use %s and %d to %d random bytes in base64", secretPrefix, minKey, maxKey)
	}
	return key, nil
}

// Sign returns the signature of a message: the header webhook-signature.
func Sign(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	_, _ = mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Name returns the name of the channel.
func (c *Channel) Name() string { return Name }

// Send posts a message. Whatever is no 2xx is a failure, and 410 one that is not tried again.
func (c *Channel) Send(ctx context.Context, m notice.Message) (json.RawMessage, error) {
	payload, err := m.Payload(ctx, notice.Shows{Arguments: c.cfg.Arguments, Links: c.cfg.Links})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address cannot be asked")
	}
	now := c.cfg.Now()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "adjourn")
	r.Header.Set("Webhook-Id", m.ID)
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("Webhook-Signature", Sign(c.key, m.ID, now, body))
	answer, err := c.client.Do(r)
	if err != nil {
		// What wraps it holds the address, which may hold a secret.
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	return nil, outcome(answer)
}

func outcome(answer *http.Response) error {
	status := answer.StatusCode
	err := fmt.Errorf("the server answered %d", status)
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("%w, and redirects are not followed", err)
	case status == http.StatusGone:
		return fmt.Errorf("%w: it takes no more: %w", err, notice.ErrPermanent)
	}
	if seconds, parsed := strconv.Atoi(answer.Header.Get("Retry-After")); parsed == nil && seconds > 0 && seconds <= 7*24*3600 {
		return &notice.LaterError{Cause: err, After: time.Duration(seconds) * time.Second}
	}
	return err
}
