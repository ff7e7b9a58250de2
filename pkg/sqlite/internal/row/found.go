package row

import (
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Found is a row of a search: a HEAD, or a wait that uses HEAD's fields.
type Found struct {
	At     Position
	Key    session.Key
	Wait   bool
	ID     string         // of a wait
	Status session.Status // of a HEAD of [store.FindSessions]
	Head   Head
}

// Item decodes the row.
func (f *Found) Item(dead func(owner string) bool) (store.Item, error) {
	if !f.Wait {
		return f.Head.Item(dead)
	}
	return store.NewItem(store.KindWait, f.ID, f.Head.Rev, f.Head.Text)
}

// Unread is the item without its record.
func (f *Found) Unread(kind store.FindKind) store.Item {
	item := store.Item{Kind: store.KindHead, ID: f.ID}
	if f.Wait {
		item.Kind = store.KindWait
	}
	switch kind {
	case store.FindSessions:
		item.Head = &journal.Head{Key: f.Key, Status: f.Status, UpdatedAt: Time(f.At[0])}
	case store.FindWaits:
		item.Wait = &journal.WaitRecord{Wait: session.Wait{ID: f.ID, OpenedAt: Time(f.At[1])}, State: session.WaitOpen}
	case store.FindDue, store.FindAhead:
	}
	return item
}
