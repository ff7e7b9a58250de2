// Package runtime carries out moves: it loads, asks the engine, does the effect, commits once.
//
// A verb is what a caller does to a session: start, submit, resume. One that is refused
// returns an [*Error] with a stable code. What no caller asks for is in packages of
// its own: the step and the dead letters (internal/worker), the sweep (internal/sweep). The
// order is always commit, send, acknowledge (docs/design/chain.md). docs/design/README.md
// says what is in which file.
package runtime
