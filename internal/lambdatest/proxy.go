//go:build linux

package lambdatest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// Upstream is where requests for AWS really go: base addresses of plain HTTP.
type Upstream struct {
	DynamoDB string
	// AWS answers everything else: queues, blobs.
	AWS string
}

// passed bounds a request that is passed on.
const passed = 30 * time.Second

// wire carries the requests of all proxies. It passes bytes on as they are.
var wire = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}

// proxy stands between one process and AWS.
type proxy struct{ w *Worker }

func (p proxy) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the process is gone
	}
	passage := p.w.passage(operation(r), body)
	p.w.f.count(passage, Traffic{Requests: 1, Sent: int64(len(body))})
	got, answered := p.strike(passage)
	if !answered {
		if got, err = p.forward(r, passage.Operation, body); err != nil {
			p.w.f.cfg.Log("%s: %v", passage, err)
			panic(http.ErrAbortHandler)
		}
		p.w.f.count(passage, Traffic{Received: int64(len(got.body))})
		after := *passage
		after.Half, after.Status = After, got.status
		if instead, answered := p.strike(&after); answered {
			got = instead
		}
	}
	for name, values := range got.header {
		out.Header()[name] = values
	}
	out.WriteHeader(got.status)
	_, _ = out.Write(got.body) // who does not listen is gone
}

// strike lets the faults decide about one half, and does what they say. A
// connection that must not be answered is cut by a panic, as net/http wants it.
func (p proxy) strike(passage *Passage) (instead answer, answered bool) {
	faults := p.w.f.faults.Load()
	if faults == nil || *faults == nil {
		return answer{}, false
	}
	fate := (*faults)(passage)
	if fate.Deed != Pass {
		p.w.f.cfg.Log("%s: %s", passage, fate.Deed)
	}
	switch fate.Deed {
	case Kill:
		p.w.Kill()
		panic(http.ErrAbortHandler)
	case Lose:
		panic(http.ErrAbortHandler)
	case Freeze:
		p.w.Freeze(fate.For)
	case Delay:
		time.Sleep(fate.For)
	case Conflict, Throttle, Fail:
		return fabricate(fate.Deed, passage.Operation, passage.Body)
	case Pass:
	}
	return answer{}, false
}

// forward passes a request on. Once sent it is carried out, whatever becomes of
// the process meanwhile.
func (p proxy) forward(r *http.Request, op string, body []byte) (answer, error) {
	base := p.w.f.cfg.Upstream.AWS
	if len(op) > 9 && op[:9] == "dynamodb:" {
		base = p.w.f.cfg.Upstream.DynamoDB
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), passed)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, base+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, values := range r.Header {
		switch name {
		case "Connection", "Expect", "Transfer-Encoding":
		default:
			request.Header[name] = values
		}
	}
	response, err := wire.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	response.Header.Del("Transfer-Encoding")
	response.Header.Del("Connection")
	return answer{response.StatusCode, response.Header, got}, nil
}
