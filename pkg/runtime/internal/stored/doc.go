// Package stored reads sessions from the store, which it also commits their moves to.
//
// Verbs, steps and the sweep stand on it. It decides nothing: what the next entry is comes from the
// engine, and whether a caller may have it is for package runtime to say.
package stored
