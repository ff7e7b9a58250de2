package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Body returns what m would send, for hosts that no test can stand in for.
func Body(m llm.Model, req llm.Request) ([]byte, error) {
	ours, ok := m.(*model)
	if !ok {
		return nil, errors.New("not a model of this package")
	}
	params, err := ours.params(req)
	if err != nil {
		return nil, err
	}
	return json.Marshal(params)
}

// Transport returns what requests go through.
func Transport() *http.Transport {
	b, _ := client().Transport.(bounded)
	t, _ := b.RoundTripper.(*http.Transport)
	return t
}

// Bound returns a body of which no more is read than of a stream of events.
func Bound(events io.Reader, most int64) io.Reader {
	return &boundedBody{ReadCloser: io.NopCloser(events), left: most, most: most, events: true}
}
