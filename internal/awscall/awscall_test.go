package awscall_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/awscall"
)

func TestDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status          int
		failure, answer string
		want            *awscall.RefusedError
	}{
		"answered":           {status: 200, answer: "0123456789"},
		"no more than asked": {status: 200, answer: "0123456789 and more"},
		"refused in JSON":    {status: 400, answer: `{"__type":"a#b","message":"m"}`, want: &awscall.RefusedError{Status: 400, Code: "b", Message: "m"}},
		"refused in XML":     {status: 403, answer: `<R><Error><Code>c</Code></Error></R>`, want: &awscall.RefusedError{Status: 403, Code: "c"}},
		"a function failed":  {status: 200, failure: "Unhandled", answer: "why", want: &awscall.RefusedError{Status: 200, Code: "Unhandled", Message: "why"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.Header.Get("Authorization"), "/20260301/eu-west-1/sts/aws4_request") || r.Method != http.MethodPost || r.URL.Path != "/there" {
					w.WriteHeader(http.StatusTeapot)
				}
				if c.failure != "" {
					w.Header().Set("X-Amz-Function-Error", c.failure)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			t.Cleanup(server.Close)
			most := int64(10)
			if c.want != nil {
				most = 100
			}
			raw, err := awscall.Caller{
				Config: aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")},
				Now:    func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }, Most: most,
			}.Do(t.Context(), awscall.Request{Service: "sts", Path: "/there"})
			if c.want == nil {
				require.NoError(t, err)
				require.Equal(t, "0123456789", string(raw))
				return
			}
			c.want.Service = "sts"
			require.Equal(t, c.want, err)
		})
	}
}
