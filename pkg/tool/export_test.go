package tool

import "github.com/adjourn/adjourn/pkg/session"

// What the runtime makes calls with, under the names that the tests of this package use.
type (
	CallConfig = config
	Taken      = taken
)

var NewCall = newCall

// Taken ends the call.
func (c *Call) Taken() Taken { return c.take() }

// Session is what people are shown of the question.
func (q Question) Session() *session.Question { return q.shown() }

// Fits reports whether an answer is one to the question.
func (q Question) Fits(a session.Answer) bool {
	_, ok := q.reply(a)
	return ok
}

// Validate says what is wrong with the expiry.
func (e *Expiry) Validate(kind session.WaitKind) error { return e.check(kind) }
