package remote

import "net/http"

// MaxHeader returns how large the header of an answer to the client may be.
func MaxHeader(client *http.Client) int64 {
	b, _ := client.Transport.(bounded)
	t, _ := b.RoundTripper.(*http.Transport)
	return t.MaxResponseHeaderBytes
}
