package serverless

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// plainBodies is an HTTP client that does not lose answers. The SDK closes a
// request's body as soon as the answer begins, while net/http may still be asking the
// body for a byte too many. A closed body with a WriteTo answers that with an error,
// and net/http then closes the connection under the answer: a request that was carried
// out looks failed, and is made again. A body that can only be read says EOF.
type plainBodies struct{ aws.HTTPClient }

// Do sends a request whose body hides everything but Read and Close.
func (c plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.HTTPClient.Do(r)
}
