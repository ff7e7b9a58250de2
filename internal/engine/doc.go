// Package engine folds a journal into a session and decides the next move.
//
// It is pure: values in, values out; no I/O, no clock, no goroutine, no
// randomness. [Apply] folds one entry, [Dispatch] reads the table of
// docs/design/chain.md for one message, [Plan] says what each open call needs, and the functions
// that return a [Move] build the next entry with the records that go with it.
package engine
