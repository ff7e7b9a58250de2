// Package sqlite is the embedded engine: store and queue in one SQLite file.
//
// The same records as on AWS, queue included, in one file (WAL) that several
// processes may use at once. Commit and enqueue share a transaction here, so a
// committed step cannot be left without its message.
//
// All writing goes through one goroutine per [DB], which takes what has
// gathered, runs it in one transaction and answers all of it. What the contract
// calls durable is committed with synchronous=FULL. Claims and receipts are not:
// power loss may undo the newest of them, and then nothing that came after them
// is there either, for the log is synced in order. They say who works on what,
// never what was done.
package sqlite
