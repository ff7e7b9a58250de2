package store

import (
	"context"

	"github.com/adjourn/adjourn/pkg/session"
)

// Watcher is a [Store] that notices what other processes write to it. Not every store is one: who
// waits for a session in another store reads it again and again.
type Watcher interface {
	// Watch has changed called soon after another process wrote, whatever it wrote, until stop is
	// called; once more than needed is possible, also after stop. What this process writes is not
	// told. Neither Watch nor stop waits for anything. changed must return at once. If the store
	// cannot tell, ok is false, and stop nil.
	Watch(changed func()) (stop func(), ok bool)
}

// Notifier is a [Store] that writes notices with what they tell ([KindNotice]). Who finds one that
// is due has it sent.
type Notifier interface {
	// Notify has a notice sent, soon and by whoever sends them. It waits for nobody outside.
	Notify(ctx context.Context, key session.Key, id string) error
}
