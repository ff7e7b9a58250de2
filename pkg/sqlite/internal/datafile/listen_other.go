//go:build !linux

package datafile

// Listener waits for what is written to a file.
type Listener struct{}

func (*Listener) listen(string, string, chan<- struct{}) error { return errNoListening }

// Close ends the waiting.
func (*Listener) Close() {}
