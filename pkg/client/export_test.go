package client

import "net/http"

// Transport is that of [Over].
func Transport(h http.Handler) http.RoundTripper { return inProcess{h} }

// CheckAnswer is what holds an answer to its ids.
var (
	CheckAnswer  = checkAnswer
	ErrUnchecked = errUnchecked
)
