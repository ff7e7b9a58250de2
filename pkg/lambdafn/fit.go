package lambdafn

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// maxResponse is what Lambda takes as an answer, 6 MB, with room for its frame.
	maxResponse = 6<<20 - 64<<10
	// maxBody always fits into one with its headers: base64 makes four bytes of three.
	maxBody = (maxResponse - 64<<10) / 4 * 3
	// plenty is from where on an answer is worth compressing.
	plenty = 1 << 20
)

// fit encodes a response. One that Lambda would refuse becomes a problem that says so.
func fit(response events.APIGatewayV2HTTPResponse) ([]byte, error) {
	raw, err := encode(response)
	if err == nil && len(raw) > maxResponse && !response.IsBase64Encoded {
		// Its quotes and line feeds are escaped; base64 does without.
		response.Body, response.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(response.Body)), true
		raw, err = encode(response)
	}
	if err == nil && len(raw) > maxResponse {
		raw, err = encode(problem(http.StatusInternalServerError, "response_too_large",
			"The answer is larger than the 6 MB that can be sent. Ask for less of it, with limit and cursor, or for a compressed one, with Accept-Encoding: gzip.", ""))
	}
	return raw, err
}

// encode leaves <, > and & as they are: escaped, each would take six bytes.
func encode(response events.APIGatewayV2HTTPResponse) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(response); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// fits reports whether a body can be sent as the answer to a request.
func fits(r *http.Request, body []byte) bool {
	return len(body) <= maxBody || takesGzip(r.Header) && len(gzipped(body)) <= maxBody
}

// compress returns the body as it is sent, and says in the header how: a large one
// is compressed for who takes that.
func compress(r *http.Request, header http.Header, body []byte) []byte {
	if len(body) < plenty || header.Get("Content-Encoding") != "" || header.Get("Content-Range") != "" {
		return body
	}
	header.Add("Vary", "Accept-Encoding")
	if !takesGzip(r.Header) {
		return body
	}
	header.Set("Content-Encoding", "gzip")
	return gzipped(body)
}

// gzipped compresses fast rather than well: a function has little of a processor.
func gzipped(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic(err) // there is that level
	}
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	return b.Bytes()
}

// takesGzip reads Accept-Encoding (RFC 9110); gzip named there counts for more than *.
func takesGzip(header http.Header) bool {
	takes := false
	for coding := range strings.SplitSeq(strings.Join(header.Values("Accept-Encoding"), ","), ",") {
		name, parameter, _ := strings.Cut(coding, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "gzip" && name != "*" {
			continue
		}
		takes = true
		if weight, given := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameter), " ", ""), "q="); given {
			q, err := strconv.ParseFloat(weight, 64)
			takes = err == nil && q > 0
		}
		if name == "gzip" {
			break
		}
	}
	return takes
}
