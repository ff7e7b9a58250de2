// Package session holds what is remembered about a session: its journal's words, which moves are legal, how it is written down.
//
// A session is one conversation with one agent, kept as a journal of immutable
// entries ([Entry], format 1). Status moves along this table and no other way;
// a test holds the drawing to [Status.CanBecome]:
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
// The words come from design sections 1, 3, 6 and 8.
package session
