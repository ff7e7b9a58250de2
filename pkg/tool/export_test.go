package tool

// What the runtime makes calls with, under the names that the tests of this package use.
type (
	CallConfig = config
	Taken      = taken
)

var NewCall = newCall

// Taken ends the call.
func (c *Call) Taken() Taken { return c.take() }
