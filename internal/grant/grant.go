// Package grant signs and reads the tokens of links by which one person decides one wait.
//
// A token is text that holds what it allows and a signature of that (HMAC-SHA256). Nothing is
// stored for it. Whoever holds it may do what it says, so it is a secret.
package grant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Decision is one thing that the holder of a link may say.
type Decision string

// The decisions.
const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
)

// Decisions lists every decision.
func Decisions() []Decision { return []Decision{Approve, Deny} }

// Grant is what a token allows.
type Grant struct {
	Tenant, Session string
	// Wait is the id of the wait, Nonce its nonce, Digest that of the arguments that are shown.
	Wait, Nonce, Digest string
	// Decisions that may be made, each once; at least one.
	Decisions []Decision
	// Recipient is the subject whose answer it is.
	Recipient string
	// Expires is when the token ends, in whole seconds.
	Expires time.Time
}

// What a token is refused with.
var (
	// ErrInvalid: it is no token of ours. Nothing says in which way.
	ErrInvalid = errors.New("not a valid link")
	// ErrExpired: it is one, and its time is over.
	ErrExpired = errors.New("the link has expired")
)

const (
	// Prefix begins every token, so that one is known for a secret wherever it is found.
	Prefix = "adl_"
	// version is the first byte of a token. Another one is refused.
	version = 1
	// MaxText is how long a token may be. Most have some 230 characters; those of the longest
	// tenants, sessions and names of IAM have over 1,000.
	MaxText = 2048
	// domain keeps a signature from counting for anything else that is signed with the same key.
	domain = "adjourn link\x00"
)

// Sign returns the token of a grant, signed with the first key.
func (k Keys) Sign(g Grant) (string, error) {
	if len(k.all) == 0 {
		return "", errors.New("sign a link: there is no key")
	}
	body, err := encode(k.all[0].id, g)
	if err != nil {
		return "", fmt.Errorf("sign a link: %w", err)
	}
	text := Prefix + base64.RawURLEncoding.EncodeToString(append(body, mac(k.all[0].secret, body)...))
	if len(text) > MaxText {
		return "", fmt.Errorf("sign a link: it would have %d characters, and %d are the most", len(text), MaxText)
	}
	return text, nil
}

// Read returns what a token allows. The signature is checked before anything else in it is looked
// at. With [ErrExpired] the grant is returned too, for what may still be told.
func (k Keys) Read(text string, now time.Time) (Grant, error) {
	encoded, ours := strings.CutPrefix(text, Prefix)
	if !ours || len(text) > MaxText {
		return Grant{}, ErrInvalid
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") || len(raw) < 2+sha256.Size || raw[0] != version {
		return Grant{}, ErrInvalid
	}
	body, signature := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	rest := reader{left: body[1:]}
	id := rest.short()
	secret := k.secretOf(id)
	if secret == nil || !hmac.Equal(signature, mac(secret, body)) {
		return Grant{}, ErrInvalid
	}
	g, ok := rest.grant()
	switch {
	case !ok:
		return Grant{}, ErrInvalid // signed with our key by another program
	case !now.Before(g.Expires):
		return g, ErrExpired
	}
	return g, nil
}

func mac(secret, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte(domain)) // it never fails
	_, _ = h.Write(body)
	return h.Sum(nil)
}

// encode writes a grant: the version, the decisions as bits, the expiry, then each text behind its
// length.
func encode(key string, g Grant) ([]byte, error) {
	digest, err := base64.RawURLEncoding.Strict().DecodeString(g.Digest)
	if err != nil || len(digest) != sha256.Size {
		return nil, fmt.Errorf("%.80q is no digest", g.Digest)
	}
	bits := byte(0)
	for _, d := range g.Decisions {
		bit := bitOf(d)
		if bit == 0 || bits&bit != 0 {
			return nil, fmt.Errorf("the decision %.20q is unknown, or there twice", d)
		}
		bits |= bit
	}
	seconds := g.Expires.Unix()
	if bits == 0 || seconds <= 0 || g.Tenant == "" || g.Session == "" || g.Wait == "" || g.Nonce == "" || g.Recipient == "" {
		return nil, errors.New("a link needs a tenant, a session, a wait with a nonce, a decision, a recipient and an expiry")
	}
	body := []byte{version}
	for _, text := range []string{key, g.Tenant, g.Session, g.Wait, g.Nonce} {
		if len(text) > 255 {
			return nil, fmt.Errorf("%.40q… has over 255 bytes", text)
		}
		body = append(append(body, byte(len(text))), text...)
	}
	body = append(body, digest...)
	body = append(body, bits)
	body = binary.BigEndian.AppendUint64(body, uint64(seconds))
	if len(g.Recipient) > MaxText {
		return nil, errors.New("the name of the recipient is too long")
	}
	return append(binary.BigEndian.AppendUint16(body, uint16(len(g.Recipient))), g.Recipient...), nil
}

func bitOf(d Decision) byte {
	for i, known := range Decisions() {
		if d == known {
			return 1 << i
		}
	}
	return 0
}

// reader takes a body apart. After the first piece that is not there it has failed, and every
// further piece is empty.
type reader struct {
	left   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n > len(r.left) {
		r.failed = true
		return nil
	}
	piece := r.left[:n]
	r.left = r.left[n:]
	return piece
}

// short is a text behind one byte of length.
func (r *reader) short() string {
	size := r.take(1)
	if r.failed {
		return ""
	}
	return string(r.take(int(size[0])))
}

// grant reads all that follows the key's id. Nothing may be left, and nothing missing.
func (r *reader) grant() (g Grant, ok bool) {
	g.Tenant, g.Session, g.Wait, g.Nonce = r.short(), r.short(), r.short(), r.short()
	g.Digest = base64.RawURLEncoding.EncodeToString(r.take(sha256.Size))
	bits, seconds, size := r.take(1), r.take(8), r.take(2)
	if r.failed {
		return Grant{}, false
	}
	g.Recipient = string(r.take(int(binary.BigEndian.Uint16(size))))
	for i, d := range Decisions() {
		if bits[0]&(1<<i) != 0 {
			g.Decisions = append(g.Decisions, d)
		}
	}
	at := binary.BigEndian.Uint64(seconds)
	unknown := bits[0] >> len(Decisions())
	g.Expires = time.Unix(int64(at&(1<<62-1)), 0).UTC() //nolint:gosec // fits: the mask leaves 62 bits
	whole := !r.failed && len(r.left) == 0 && unknown == 0 && len(g.Decisions) > 0 && at>>62 == 0
	return g, whole && g.Tenant != "" && g.Session != "" && g.Wait != "" && g.Nonce != "" && g.Recipient != ""
}

// Masked returns a path of a request as it may be logged: without the token in it.
func Masked(path string) string {
	if before, _, found := strings.Cut(path, "/a/"); found && !strings.Contains(before, "/sessions") {
		return before + "/a/…"
	}
	if before, _, found := strings.Cut(path, Prefix); found {
		return before + "…"
	}
	return path
}
