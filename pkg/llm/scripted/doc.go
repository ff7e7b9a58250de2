// Package scripted is a model that says what it was told to say.
//
// [New] answers from a list, [Func] from a Go function. Neither keeps state
// between requests: what comes next is computed from the conversation, so a
// request that is delivered twice is answered the same twice.
package scripted
