package store

// Watcher is a [Store] that notices what other processes write to it. Not every store is one: who
// waits for a session in another store reads it again and again.
type Watcher interface {
	// Watch has changed called soon after another process wrote, whatever it wrote, until stop is
	// called; once more than needed is possible, also after stop. What this process writes is not
	// told. Neither Watch nor stop waits for anything. changed must return at once. If the store
	// cannot tell, ok is false, and stop nil.
	Watch(changed func()) (stop func(), ok bool)
}
