package webhook

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// The vectors of the specification's libraries and of Svix's page about verifying by hand.
func TestSign(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		secret, id, body, want string
		at                     int64
	}{
		{secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", 1614265330},
		{"whsec_plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", `{"event_type":"ping","data":{"success":true}}`, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=", 1731705121},
	} {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(v.secret, "whsec_"))
		require.NoError(t, err)
		require.Equal(t, v.want, Sign(key, v.id, time.Unix(v.at, 0), []byte(v.body)))
	}
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	key, err := ParseSecret(secret)
	require.NoError(t, err)
	require.Len(t, key, 24)
	for _, wrong := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!!", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa"} {
		_, err := ParseSecret(wrong)
		require.ErrorContains(t, err, "24 to 64 random bytes")
		require.NotContains(t, err.Error(), "MfKQ")
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckURL("https://example.com/hook?x=1", false))
	require.NoError(t, CheckURL("http://example.com", true))
	for _, wrong := range []string{"", "example.com", "http://example.com", "ftp://example.com", "https://", "https://ana:pw@example.com", "%"} {
		require.Error(t, CheckURL(wrong, false), wrong)
	}
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for addr, allowed := range map[string][2]bool{ // without and with AllowPrivate
		"93.184.216.34": {true, true}, "2606:2800:220:1::1": {true, true}, "::ffff:93.184.216.34": {true, true},
		"127.0.0.1": {false, true}, "127.9.9.9": {false, true}, "::1": {false, true}, "::ffff:127.0.0.1": {false, true},
		"10.0.0.1": {false, true}, "172.16.0.1": {false, true}, "192.168.1.1": {false, true}, "100.64.0.1": {false, true}, "198.18.0.1": {false, true}, "0.1.2.3": {false, true}, "fd00::1": {false, true}, "::ffff:10.1.1.1": {false, true},
		"169.254.169.254": {}, "::ffff:169.254.169.254": {}, "fe80::1": {}, "0.0.0.0": {}, "::": {}, "224.0.0.1": {}, "ff02::1": {}, "255.255.255.255": {},
		"fd00:ec2::254": {}, "fd00:ec2::23": {}, "::169.254.169.254": {}, "::10.0.0.1": {}, "::ffff:0:a00:1": {}, "64:ff9b::a9fe:a9fe": {}, "2002:7f00:1::": {}, "2001:0:1::": {}, "fec0::1": {},
	} {
		for i, allowPrivate := range []bool{false, true} {
			err := checkAddress(netip.MustParseAddr(addr), allowPrivate)
			if allowed[i] {
				require.NoError(t, err, addr)
			} else {
				require.ErrorIs(t, err, ErrAddress, addr)
			}
		}
	}
	require.ErrorIs(t, guard(true)("tcp", "nonsense", nil), ErrAddress)
}

func message() notice.Message {
	return notice.Message{ID: "msg_1", Notice: journal.Notice{Type: journal.NoticeTest, At: time.Unix(1_700_000_000, 0).UTC()}}
}

func channel(t *testing.T, url string, change func(*Config)) *Channel {
	t.Helper()
	cfg := Config{URL: url, Secret: secret, AllowHTTP: true, AllowPrivate: true, Now: func() time.Time { return time.Unix(1_700_000_100, 0) }}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	require.NoError(t, err)
	return c
}

func TestSend(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		key, _ := ParseSecret(secret)
		right := err == nil && r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json" &&
			r.Header.Get("Webhook-Id") == "msg_1" && r.Header.Get("Webhook-Timestamp") == "1700000100" &&
			r.Header.Get("Webhook-Signature") == Sign(key, "msg_1", time.Unix(1_700_000_100, 0), body) &&
			string(body) == `{"type":"test","timestamp":"2023-11-14T22:13:20Z","data":{"tenant":"","session":""}}`
		if !right {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write(make([]byte, 1<<20)) // more than anybody reads
	}))
	t.Cleanup(server.Close)
	_, err := channel(t, server.URL, nil).Send(t.Context(), message())
	require.NoError(t, err)
}

func TestSend_what_is_no_success(t *testing.T) {
	t.Parallel()
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	answer := func(status int, header ...string) error {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
		}))
		defer server.Close()
		_, err := channel(t, server.URL+"/?token=hush", nil).Send(t.Context(), message())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hush")
		return err
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		require.ErrorContains(t, answer(status, "Location", other.URL), "redirects are not followed")
	}
	require.False(t, reached)
	require.ErrorIs(t, answer(http.StatusGone), notice.ErrPermanent)
	require.ErrorContains(t, answer(500), "the server answered 500")
	var later *notice.LaterError
	require.ErrorAs(t, answer(503, "Retry-After", "120"), &later)
	require.Equal(t, 2*time.Minute, later.After)
	require.NotErrorIs(t, answer(400), notice.ErrPermanent)
}

// A server nobody allowed is not reached, by whatever name, and the error does not name the address,
// which may hold a secret.
func TestSend_refuses_addresses(t *testing.T) {
	t.Parallel()
	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		c := channel(t, "http://"+host+":"+port+"/?token=hush", func(cfg *Config) { cfg.AllowPrivate = false })
		_, err := c.Send(t.Context(), message())
		require.ErrorIs(t, err, ErrAddress, host)
		require.ErrorContains(t, err, "ADJOURN_WEBHOOK_ALLOW_PRIVATE=true", host)
		require.NotContains(t, err.Error(), "hush")
	}
	require.False(t, reached)
	_, err := New(Config{URL: server.URL, Secret: secret})
	require.ErrorContains(t, err, "ADJOURN_WEBHOOK_ALLOW_HTTP=true")
}
