// Package sqlite is the embedded engine: store and queue in one SQLite file.
//
// The same records as on AWS, queue included, in one file (WAL) that several
// processes may use at once. Commit and enqueue share a transaction here, so a
// committed step cannot be left without its message.
//
// All writing goes through one goroutine per [DB], which takes the operations that are waiting,
// runs them in one transaction and answers all of them. What the contract calls durable is
// committed with synchronous=FULL. Claims and receipts are not: power loss may undo the newest of
// them, and then all later writes are lost with them, because the log is synced in order. They
// record which worker has what, never what was done.
//
// This package is what lives in the file: the store, the queue, their statements and the goroutine
// that writes. The file itself (made, opened, locked, lost) is internal/datafile, what a row holds
// is internal/row.
package sqlite
