package lambdafn

import (
	"fmt"
	"runtime/debug"
)

// guard makes an error of a panic: the process lives, and with it what it has cached.
func guard(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = newPanicError(p)
		}
	}()
	return work()
}

// PanicError is a panic that a handler caught.
type PanicError struct {
	// Value it was made with, as text of at most some hundred bytes.
	Value string
	Stack []byte
}

// Error says what the panic said.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %s", e.Value) }

const maxPanicText = 300

// newPanicError is called while a panic is being recovered from.
func newPanicError(value any) *PanicError {
	text := fmt.Sprint(value)
	if len(text) > maxPanicText {
		text = text[:maxPanicText] + "…"
	}
	return &PanicError{Value: text, Stack: debug.Stack()}
}
