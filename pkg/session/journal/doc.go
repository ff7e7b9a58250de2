// Package journal holds what is stored of a session and how it is written down: entries, records, queue messages, their codec.
//
// Programs that define and run agents need package session alone. This one is for
// those who write an adapter of a store or a queue, or read stored sessions.
//
// An [Entry] is one immutable line of a session's journal ([Encode], [Decode]). A record ([Head],
// [WaitRecord], [ToolRecord], [Mail], …) is overwritten in place ([MarshalRecord],
// [UnmarshalRecord]) and keeps the fields that a newer program wrote and this one does not have.
// A [Wake] is the message that travels through the queue.
package journal
