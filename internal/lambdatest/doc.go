// Package lambdatest is Lambda for tests: it runs the real bootstrap binaries of functions, with the faults that no emulator makes.
//
// A [Function] starts processes of a binary and serves each a Runtime API, as a
// sandbox does: warm processes are used again, frozen between invocations and
// killed at the function's timeout. What a process sends to AWS goes through a
// proxy of its own, where a fault may strike before a request is passed on or
// after its answer came. A [Mapping] polls a queue and invokes a function as an
// event source mapping does; a [Gateway] turns HTTP requests into events of an
// HTTP API.
package lambdatest
