// Package stored loads and commits sessions.
//
// Verbs, steps and the sweep stand on it. It decides nothing: what the next entry is comes from the
// engine, and whether a caller may have it is for package runtime to say.
package stored
