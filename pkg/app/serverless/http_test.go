package serverless

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestPlainBodies(t *testing.T) {
	t.Parallel()
	var got []string
	client := plainBodies{transport(func(r *http.Request) (*http.Response, error) {
		if r.Body == nil {
			got = append(got, "none")
			return nil, nil
		}
		require.NotImplements(t, (*io.WriterTo)(nil), r.Body)
		body, err := io.ReadAll(r.Body)
		got = append(got, string(body))
		return nil, err
	})}
	for _, body := range []io.Reader{nil, strings.NewReader("hello")} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com", body)
		require.NoError(t, err)
		_, err = client.Do(r)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"none", "hello"}, got)
}

func TestLoadAWS_wraps_the_client_of_the_SDK(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "") // with one the SDK has made a client already
	cfg, err := loadAWS(t.Context())
	require.NoError(t, err)
	require.IsType(t, plainBodies{}, cfg.HTTPClient)
	require.NotNil(t, cfg.HTTPClient.(plainBodies).HTTPClient)
}
