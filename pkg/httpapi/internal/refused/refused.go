// Package refused is what a door says no with before the runtime is asked.
package refused

import "fmt"

// Error is a refusal. It is a value: it may be shared.
type Error struct {
	// Code is one of internal/codes.
	Code string
	// Detail is what the caller is told.
	Detail string
	// Header is sent along, such as the methods that are allowed.
	Header map[string]string
}

// Error returns the detail.
func (e *Error) Error() string { return e.Detail }

// New returns a refusal.
func New(code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}
