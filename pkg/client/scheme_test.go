package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
)

// TestScheme asks real servers with the wrong one of http and https.
func TestScheme(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	for server, scheme := range map[*httptest.Server]string{plain: "https", encrypted: "http"} {
		other := strings.Replace(server.URL, server.URL[:strings.Index(server.URL, ":")], scheme, 1) + "/prod"
		c, err := client.New(client.Config{URL: other, Token: token})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		_, err = c.Inbox(t.Context(), client.InboxParams{})
		require.ErrorIs(t, err, client.ErrScheme)
		require.NotErrorIs(t, err, client.ErrUnreachable, "there is a server")
		require.ErrorContains(t, err, "; write "+server.URL+"/prod")
	}
}

// TestScheme_far: to speak without encryption to another machine is not advised.
func TestScheme_far(t *testing.T) {
	t.Parallel()
	c, err := client.New(client.Config{URL: "https://example.com", HTTP: &http.Client{Transport: &script{answers: []answer{breaks(http.ErrSchemeMismatch)}}}})
	require.NoError(t, err)
	_, err = c.Inbox(t.Context(), client.InboxParams{})
	require.ErrorIs(t, err, client.ErrScheme)
	require.NotContains(t, err.Error(), "http://")
	_, err = over(t, &script{answers: []answer{says(400, `{"code": "invalid_field", "detail": "x"}`)}}).Inbox(t.Context(), client.InboxParams{})
	require.NotErrorIs(t, err, client.ErrScheme, "a refusal is one")
}

// TestNotSent: that nothing was sent is said only when no try came through.
func TestNotSent(t *testing.T) {
	t.Parallel()
	lost := breaks(&net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")})
	for name, c := range map[string]struct {
		answers []answer
		notSent bool
	}{
		"no connection":       {[]answer{refusesConnection}, true},
		"lost":                {[]answer{lost}, false},
		"lost, then gone":     {[]answer{lost, refusesConnection}, false},
		"busy, then gone":     {[]answer{problem(503), refusesConnection}, false},
		"no connection, then": {[]answer{refusesConnection, lost}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := over(t, &script{answers: c.answers}).Session(context.Background(), "s", 0)
				require.ErrorIs(t, err, client.ErrUnreachable)
				require.Equal(t, c.notSent, errors.Is(err, client.ErrNotSent))
				require.NotContains(t, err.Error(), client.ErrNotSent.Error())
			})
		})
	}
}
