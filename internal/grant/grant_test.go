package grant_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/grant"
)

var (
	now    = time.Unix(1_700_000_000, 0).UTC()
	secret = strings.Repeat("k", grant.MinKey)
	digest = base64.RawURLEncoding.EncodeToString(make([]byte, sha256.Size))
)

func parse(t testing.TB, text string) grant.Keys {
	t.Helper()
	k, err := grant.ParseKeys(text)
	require.NoError(t, err)
	return k
}

func some() grant.Grant {
	return grant.Grant{
		Tenant: "acme", Session: "ses_4kYt0QhRtYw2xk3C", Wait: "w2-1", Nonce: "w2-1_3zMGPtTbK-_Ko", Digest: digest,
		Decisions: grant.Decisions(), Recipient: "ada@example.com", Expires: now.Add(time.Hour),
	}
}

func TestSign_and_Read(t *testing.T) {
	t.Parallel()
	k := parse(t, grant.FormatKey("one", []byte(secret)))
	for _, decisions := range [][]grant.Decision{grant.Decisions(), {grant.Approve}, {grant.Deny}} {
		g := some()
		g.Decisions = decisions
		text, err := k.Sign(g)
		require.NoError(t, err)
		require.Less(t, len(text), 300)
		require.Regexp(t, "^"+grant.Prefix+"[A-Za-z0-9_-]+$", text)
		read, err := k.Read(text, now)
		require.NoError(t, err)
		require.Equal(t, g, read)

		read, err = k.Read(text, g.Expires.Add(-1))
		require.NoError(t, err)
		require.Equal(t, g, read)
		read, err = k.Read(text, g.Expires)
		require.ErrorIs(t, err, grant.ErrExpired)
		require.Equal(t, g, read, "what it was for may be told")
	}
}

// TestRead_every_byte: a token of which any byte differs is not ours, and neither is one that is longer
// or shorter.
func TestRead_every_byte(t *testing.T) {
	t.Parallel()
	k := parse(t, grant.FormatKey("one", []byte(secret)))
	text, err := k.Sign(some())
	require.NoError(t, err)
	refused := func(text string) {
		g, err := k.Read(text, now)
		require.ErrorIs(t, err, grant.ErrInvalid, text)
		require.Zero(t, g)
	}
	for i := range text {
		refused(text[:i])
		refused(text[i+1:])
		for _, c := range "AZaz09-_=+/. \n%" {
			if changed := text[:i] + string(c) + text[i+1:]; changed != text {
				refused(changed)
			}
		}
		refused(text[:i] + "\n" + text[i:])
	}
	for _, more := range []string{"A", "=", "\n", " ", text, strings.Repeat("A", grant.MaxText)} {
		refused(text + more)
	}
	refused("")
	refused(grant.Prefix)
	refused(strings.TrimPrefix(text, grant.Prefix))
	g, err := (grant.Keys{}).Read(text, now)
	require.ErrorIs(t, err, grant.ErrInvalid)
	require.Zero(t, g)
}

func TestKeys_rotation(t *testing.T) {
	t.Parallel()
	first, second := grant.FormatKey("one", []byte(secret)), grant.FormatKey("two", []byte(strings.Repeat("m", 40)))
	old, err := parse(t, first).Sign(some())
	require.NoError(t, err)
	both := parse(t, second+" , "+first)
	_, err = both.Read(old, now)
	require.NoError(t, err)
	fresh, err := both.Sign(some())
	require.NoError(t, err)
	_, err = parse(t, second).Read(fresh, now)
	require.NoError(t, err, "the first signs")
	_, err = parse(t, first).Read(fresh, now)
	require.ErrorIs(t, err, grant.ErrInvalid)
	_, err = parse(t, second).Read(old, now)
	require.ErrorIs(t, err, grant.ErrInvalid, "a key that is taken away ends its links")
	_, err = parse(t, grant.FormatKey("one", []byte(strings.Repeat("x", 32)))).Read(old, now)
	require.ErrorIs(t, err, grant.ErrInvalid, "another key of the same id")
}

func TestParseKeys_refuses(t *testing.T) {
	t.Parallel()
	good := base64.StdEncoding.EncodeToString([]byte(secret))
	for _, text := range []string{
		good, ":" + good, "one:", "one:short", "one:!" + good, "o ne:" + good, strings.Repeat("i", 17) + ":" + good, "one:" + good + ",", ",",
		"one:" + good + ",one:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("n", 32))), "one:" + good + ",two:" + good,
		"one:" + base64.StdEncoding.EncodeToString([]byte(secret[1:])), "one " + good,
	} {
		k, err := grant.ParseKeys(text)
		require.ErrorIs(t, err, grant.ErrKeys, text)
		require.True(t, k.IsZero())
		require.NotContains(t, err.Error(), good[:10], "it is a secret")
	}
	many := ""
	for i := range 9 {
		many += grant.FormatKey(string(rune('a'+i)), []byte(strings.Repeat(string(rune('a'+i)), 32))) + ","
	}
	_, err := grant.ParseKeys(strings.TrimSuffix(many, ","))
	require.ErrorIs(t, err, grant.ErrKeys)
	for _, text := range []string{"", " \n"} {
		require.True(t, parse(t, text).IsZero())
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		raw := []byte(strings.Repeat("\xff\xfe\xfd", 11))
		require.False(t, parse(t, "one:"+encoding.EncodeToString(raw)).IsZero())
	}
}

func TestSign_refuses(t *testing.T) {
	t.Parallel()
	k := parse(t, grant.FormatKey("one", []byte(secret)))
	for name, alter := range map[string]func(*grant.Grant){
		"no tenant": func(g *grant.Grant) { g.Tenant = "" }, "no session": func(g *grant.Grant) { g.Session = "" }, "no wait": func(g *grant.Grant) { g.Wait = "" },
		"no nonce": func(g *grant.Grant) { g.Nonce = "" }, "no digest": func(g *grant.Grant) { g.Digest = "" }, "no recipient": func(g *grant.Grant) { g.Recipient = "" },
		"no decision": func(g *grant.Grant) { g.Decisions = nil }, "no expiry": func(g *grant.Grant) { g.Expires = time.Time{} },
		"a decision twice":    func(g *grant.Grant) { g.Decisions = []grant.Decision{grant.Deny, grant.Deny} },
		"an unknown decision": func(g *grant.Grant) { g.Decisions = []grant.Decision{"edit"} },
		"a long session":      func(g *grant.Grant) { g.Session = strings.Repeat("s", 256) },
		"a long recipient":    func(g *grant.Grant) { g.Recipient = strings.Repeat("r", grant.MaxText) },
		"no such digest":      func(g *grant.Grant) { g.Digest = digest + "A" },
	} {
		g := some()
		alter(&g)
		_, err := k.Sign(g)
		require.Error(t, err, name)
	}
	_, err := (grant.Keys{}).Sign(some())
	require.Error(t, err)
	longest := some()
	longest.Tenant, longest.Session, longest.Recipient = strings.Repeat("t", 128), strings.Repeat("s", 128), strings.Repeat("r", 640)
	text, err := k.Sign(longest)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), grant.MaxText)
	read, err := k.Read(text, now)
	require.NoError(t, err)
	require.Equal(t, longest, read)
}

// TestRead_what_we_never_sign: a signature alone is not enough.
func TestRead_what_we_never_sign(t *testing.T) {
	t.Parallel()
	k := parse(t, grant.FormatKey("one", []byte(secret)))
	text, err := k.Sign(some())
	require.NoError(t, err)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, grant.Prefix))
	require.NoError(t, err)
	body := raw[:len(raw)-sha256.Size]
	bits := len(body) - 2 - len(some().Recipient) - 8 - 1
	expiry := bits + 1
	signed := func(body []byte) string {
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte("adjourn link\x00"))
		h.Write(body)
		return grant.Prefix + base64.RawURLEncoding.EncodeToString(h.Sum(body))
	}
	_, err = k.Read(signed(append([]byte{}, body...)), now)
	require.NoError(t, err, "the test signs as the program does")
	for name, alter := range map[string]func(body []byte) []byte{
		"a version to come":    func(b []byte) []byte { b[0] = 2; return b },
		"no decision":          func(b []byte) []byte { b[bits] = 0; return b },
		"an unknown decision":  func(b []byte) []byte { b[bits] |= 4; return b },
		"more behind it":       func(b []byte) []byte { return append(b, 0) },
		"less":                 func(b []byte) []byte { return b[:len(b)-1] },
		"an endless expiry":    func(b []byte) []byte { binary.BigEndian.PutUint64(b[expiry:], 1<<63); return b },
		"an endless recipient": func(b []byte) []byte { binary.BigEndian.PutUint16(b[expiry+8:], 1<<15); return b },
		"nothing but the key":  func(b []byte) []byte { return b[:5] },
		"the version alone":    func(b []byte) []byte { return b[:1] },
	} {
		_, err := k.Read(signed(alter(append([]byte{}, body...))), now)
		require.ErrorIs(t, err, grant.ErrInvalid, name)
	}
	// Signed with the key for something else.
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	_, err = k.Read(grant.Prefix+base64.RawURLEncoding.EncodeToString(h.Sum(append([]byte{}, body...))), now)
	require.ErrorIs(t, err, grant.ErrInvalid)
}

func TestMasked(t *testing.T) {
	t.Parallel()
	k := parse(t, grant.FormatKey("one", []byte(secret)))
	text, err := k.Sign(some())
	require.NoError(t, err)
	for path, want := range map[string]string{
		"/a/" + text:              "/a/…",
		"/stage/a/" + text:        "/stage/a/…",
		"/a/x":                    "/a/…",
		"/a/" + text + "/more":    "/a/…",
		"//a/" + text:             "//a/…",
		"/b/" + text:              "/b/…",
		"/sessions/a/waits":       "/sessions/a/waits",
		"/sessions/a/" + text:     "/sessions/a/…",
		"/sessions/s1/waits/w2-1": "/sessions/s1/waits/w2-1",
		"/waits":                  "/waits",
	} {
		require.Equal(t, want, grant.Masked(path))
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://a.example", "http://127.0.0.1:8420", "https://a.example/stage", "https://[::1]:8/x"} {
		require.NoError(t, grant.CheckURL(good), good)
	}
	for _, bad := range []string{"", "a.example", "javascript:alert(1)", "https://", "https://u:p@a", "https://a/?b", "https://a/#b", "https://a/'b", "https://a/ b", "data:text/html,x", "https://a/\n"} {
		require.Error(t, grant.CheckURL(bad), bad)
	}
}

// FuzzRead: no text but what was signed is read, and what is read is signed again to the same text.
func FuzzRead(f *testing.F) {
	k := parse(f, grant.FormatKey("one", []byte(secret)))
	text, err := k.Sign(some())
	require.NoError(f, err)
	f.Add(text, []byte(nil))
	f.Add(text[:len(text)-1], []byte{1})
	f.Add(grant.Prefix, []byte{1, 3, 'o', 'n', 'e', 1, 't'})
	f.Fuzz(func(t *testing.T, given string, body []byte) {
		if g, err := k.Read(given, now); err == nil {
			require.Equal(t, some(), g)
			require.Equal(t, text, given)
		}
		// Of a body that is signed, too, nothing but a whole grant is read.
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte("adjourn link\x00"))
		h.Write(body)
		signed := grant.Prefix + base64.RawURLEncoding.EncodeToString(h.Sum(append([]byte{}, body...)))
		if g, err := k.Read(signed, now); err == nil {
			again, err := k.Sign(g)
			require.NoError(t, err)
			require.Equal(t, signed, again)
		}
	})
}
