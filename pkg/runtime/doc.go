// Package runtime carries out the moves of sessions: it loads a session, asks the engine, does the effect and commits once.
//
// A verb is what a caller does to a session: start, submit, resume, stop. One that is
// refused returns an [*Error] with a stable code. The order is always commit, send, acknowledge
// (docs/design/chain.md). docs/design/README.md says what is in which file.
//
// The packages under internal have the other parts:
//
//   - worker: the step that a message asks for, and dead letters
//   - control: verbs that stop a task
//   - drive: takes messages from a queue for a worker
//   - sweep: finds what is due and repairs the effects of a crash
//   - answers: checks what callers answer
//   - ledger: the record of each call with effects
//   - request: what a request with an idempotency key did
//   - stored: loads and commits sessions
//   - refusal: why a verb is refused
//
// What a caller reads of theirs ([Disposition], [SweepResult], [Error]) or gives them ([WorkParams],
// [Caller]) is a type of this package: go doc hides the fields and methods of an internal type that
// has an alias here.
package runtime
