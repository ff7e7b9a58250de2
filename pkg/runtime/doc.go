// Package runtime carries out moves: it loads, asks the engine, does the effect, commits once.
//
// Each verb has its file: start, step, submit, resume, sweep. A verb that is
// refused returns an [*Error] with a stable code. The order is always commit,
// send, acknowledge (docs/design/chain.md).
package runtime
