// Package scripted is a model with given replies, for tests.
//
// [New] answers from a list, [Func] from a Go function. Neither keeps state
// between requests: what comes next is computed from the conversation, so a
// request that is delivered twice gets the same answer twice.
package scripted
