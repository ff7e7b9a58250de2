package row

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Position is where a page ends, in the columns its kind is ordered by.
type Position [3]int64

// Cursor returns the opaque name of a position. It holds a check sum over the
// search as well: a cursor of another search is not one of this.
func Cursor(p *store.FindParams, at Position) string {
	text := fmt.Sprintf("%d.%d.%d", at[0], at[1], at[2])
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s.%08x", text, searchSum(p, text)))
}

func searchSum(p *store.FindParams, text string) uint32 {
	return crc32.ChecksumIEEE([]byte(p.Selection() + "|" + text))
}

// ParseCursor returns the position where the page of a search begins.
func ParseCursor(p *store.FindParams) (Position, error) {
	switch p.Kind {
	case store.FindSessions:
		if p.Cursor == "" {
			return Position{math.MaxInt64, math.MaxInt64}, nil
		}
	case store.FindWaits, store.FindNotices, store.FindDue, store.FindAhead:
		if p.Cursor == "" {
			return Position{math.MinInt64}, nil
		}
	default:
		return Position{}, fmt.Errorf("unknown kind of search %q", p.Kind)
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return Position{}, fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	var at Position
	var sum uint32
	if _, err := fmt.Sscanf(string(raw), "%d.%d.%d.%08x", &at[0], &at[1], &at[2], &sum); err != nil || Cursor(p, at) != p.Cursor {
		return Position{}, fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	return at, nil
}

// Found is a row of a search: a HEAD, or another item that uses HEAD's fields.
type Found struct {
	At     Position
	Key    session.Key
	Kind   store.ItemKind
	ID     string         // of what is no HEAD
	Status session.Status // of a HEAD of [store.FindSessions]
	Head   Head
}

// Item decodes the row.
func (f *Found) Item(dead func(owner string) bool) (store.Item, error) {
	if f.Kind == store.KindHead {
		return f.Head.Item(dead)
	}
	return store.NewItem(f.Kind, f.ID, f.Head.Rev, f.Head.Text)
}

// Unread is the item without its record.
func (f *Found) Unread(kind store.FindKind) store.Item {
	item := store.Item{Kind: f.Kind, ID: f.ID}
	switch kind {
	case store.FindSessions:
		item.Head = &journal.Head{Key: f.Key, Status: f.Status, UpdatedAt: Time(f.At[0])}
	case store.FindWaits:
		item.Wait = &journal.WaitRecord{Wait: session.Wait{ID: f.ID, OpenedAt: Time(f.At[1])}, State: session.WaitOpen}
	case store.FindNotices:
		item.Notice = &journal.Notice{ID: f.ID, At: Time(f.At[1])}
	case store.FindDue, store.FindAhead:
	}
	return item
}

// DueBy is the SQL that selects the HEADs and the items, those that meet one more condition each, whose
// due compares so with the first parameter.
func DueBy(compare, heads, more string) string {
	return "SELECT due, 0 AS place, sid, tenant, id, '', 'head', " + HeadColumns + " FROM sessions" +
		" WHERE due IS NOT NULL AND due" + compare + "?1" + heads + " AND (due, 0, sid) > (?2, ?3, ?4)" +
		" UNION ALL SELECT i.due, 1, iid, s.tenant, s.id, i.id, i.kind, i.rev, 0, '', 0, 0, 0, 0, 0, payload FROM items i JOIN sessions s USING (sid)" +
		" WHERE i.due IS NOT NULL AND i.due" + compare + "?1" + more + " AND (i.due, 1, iid) > (?2, ?3, ?4)" +
		" ORDER BY 1, 2, 3 LIMIT ?5"
}
