// Package session holds the types with which a session is read and set up: its status, what it waits for, what answers it, its rules, limits and state.
//
// A session is one conversation with one agent. It is kept as a journal of entries,
// which package journal holds; a [Session] is that journal folded up to its newest
// entry. Status moves along this table and no other way; a test holds the drawing to
// [Status.CanBecome]:
//
//	(none)      -> running suspended interrupted
//	running     -> running suspended interrupted completed failed cancelled
//	suspended   -> running suspended interrupted failed cancelled
//	interrupted -> running suspended failed cancelled
//	completed   -> running suspended
//	failed      -> running suspended
//	cancelled   -> running suspended
//
// completed, failed and cancelled end a task; what leaves them is a next turn,
// a retry or going back to a checkpoint, each of which is a new task. Going back
// to a place that waited leads to suspended, from anywhere but running; a fork
// begins where its checkpoint stood.
//
// docs/glossary.md says what each term means.
package session
