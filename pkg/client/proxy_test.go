package client

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProxy: what is for this machine never leaves it, whatever this machine is called.
func TestProxy(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy.example:3128"}
	choose := notHere(func(*http.Request) (*url.URL, error) { return proxy, nil })
	for address, want := range map[string]*url.URL{
		"http://localhost:8420": nil, "http://LOCALHOST:8420": nil, "http://localhost.:8420": nil, "http://127.0.0.1:8420": nil,
		"http://127.9.9.9": nil, "http://[::1]:8420": nil, "http://[::ffff:127.0.0.1]": nil,
		"https://example.com": proxy, "https://localhost.example.com": proxy, "http://10.0.0.1": proxy,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		got, err := choose(r)
		require.NoError(t, err)
		require.Equal(t, want, got, address)
	}
	require.NotNil(t, newHTTP(nil).Transport.(*http.Transport).Proxy, "a proxy is used for the rest")
}
