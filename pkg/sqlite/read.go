package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

// pageBytes is how much one read of the file returns: an iterator holds no connection while its
// consumer works, so that the consumer may call the store itself.
const pageBytes = 1 << 20

// maxID is above every id of an item: they are validated to be ASCII, or ULIDs.
const maxID = "\U0010ffff"

// Entries yields a session's entries above a seq; see [store.Store].
func (s *Store) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		if err := key.Validate(); err != nil {
			yield(journal.Entry{}, fail("read entries of", key, err))
			return
		}
		next := min(max(after, 0), math.MaxInt64-1) + 1
		for {
			page, more, err := s.entries(ctx, key, next-1)
			if err != nil {
				yield(journal.Entry{}, fail("read entries of", key, err))
				return
			}
			for _, row := range page {
				e, err := row.entry(next)
				if err != nil {
					yield(journal.Entry{}, fail("read entries of", key, err))
					return
				}
				if !yield(e, nil) {
					return
				}
				next++
			}
			if !more {
				return
			}
		}
	}
}

type entryRow struct {
	seq     int64
	payload []byte
}

func (r *entryRow) entry(want int64) (journal.Entry, error) {
	if r.seq != want {
		return journal.Entry{}, fmt.Errorf("%w: entry %d is missing, %d follows", store.ErrCorrupt, want, r.seq)
	}
	return store.DecodeEntry(r.payload, r.seq)
}

func (s *Store) entries(ctx context.Context, key session.Key, after int64) (page []entryRow, more bool, err error) {
	err = s.db.read(ctx, func(c *datafile.Conn) error {
		page, more = page[:0], false
		size := 0
		return c.Query(stmtEntries, func(values row.Values) bool {
			payload := values.Bytes(1)
			page = append(page, entryRow{seq: values.Int(0), payload: payload})
			size += len(payload)
			more = size > pageBytes
			return !more
		}, key.Tenant, key.ID, after)
	})
	return page, more, err
}

// Items yields a session's items of one kind; see [store.Store].
func (s *Store) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		err := kind.ValidateKey(key)
		switch {
		case err != nil:
		case kind == store.KindHead:
			err = s.head(ctx, key, yield)
		default:
			err = s.items(ctx, key, kind, id, yield)
		}
		if err != nil {
			yield(store.Item{}, fail("read items of", key, err))
		}
	}
}

func (s *Store) head(ctx context.Context, key session.Key, yield func(store.Item, error) bool) error {
	var head row.Head
	err := s.db.read(ctx, func(c *datafile.Conn) error {
		head = row.Head{}
		values, err := c.One(stmtHeadOf, key.Tenant, key.ID)
		if err == nil && values != nil {
			head = row.HeadOf(values)
		}
		return err
	})
	if err != nil || head.Rev == 0 {
		return err
	}
	item, err := head.Item(s.db.deadOwners())
	if err != nil {
		return err
	}
	yield(item, nil)
	return nil
}

type itemRow struct {
	rev  int64
	id   string
	text []byte
}

func (s *Store) items(ctx context.Context, key session.Key, kind store.ItemKind, id string, yield func(store.Item, error) bool) error {
	from, to := id, id
	if id == "" {
		to = maxID
	} else if begins, many := strings.CutSuffix(id, "*"); many {
		from, to = begins, begins+maxID
	}
	key = kind.Scope(key)
	for {
		var page []itemRow
		more := false
		err := s.db.read(ctx, func(c *datafile.Conn) error {
			page, more = page[:0], false
			size := 0
			return c.Query(stmtItems, func(values row.Values) bool {
				text := values.Bytes(2)
				page = append(page, itemRow{rev: values.Int(0), id: values.Text(1), text: text})
				size += len(text)
				more = size > pageBytes
				return !more
			}, key.Tenant, key.ID, string(kind), from, to)
		})
		if err != nil {
			return err
		}
		for _, row := range page {
			item, err := store.NewItem(kind, row.id, row.rev, row.text)
			if err != nil {
				return err
			}
			if !yield(item, nil) {
				return nil
			}
			from = row.id + "\x00" // the smallest id above
		}
		if !more {
			return nil
		}
	}
}

// filteredRows is how many rows a page looks at where the parameters keep only
// some: then it is short, even empty, and has a cursor.
const filteredRows = 10_000

// Find looks across sessions; see [store.Store].
func (s *Store) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	page, err := s.find(ctx, &p)
	if err != nil {
		return store.Page{}, fmt.Errorf("find %s: %w", p.Kind, datafile.Explain(err, store.ErrUnavailable))
	}
	return page, nil
}

func (s *Store) find(ctx context.Context, p *store.FindParams) (store.Page, error) {
	if err := p.Prepare(); err != nil {
		return store.Page{}, err
	}
	at, err := row.ParseCursor(p)
	if err != nil {
		return store.Page{}, err
	}
	rows := p.Limit + 1 // one more than asked for says whether there is a next page
	if p.Filtered() {
		rows = filteredRows
	}
	var f finder
	err = s.db.read(ctx, func(c *datafile.Conn) error {
		f = finder{p: p, dead: s.db.deadOwners()}
		return f.query(c, at, rows)
	})
	if err != nil {
		return store.Page{}, err
	}
	if f.page.Cursor == "" && p.Filtered() && f.looked == rows {
		f.page.Cursor = row.Cursor(p, f.last)
	}
	return f.page, nil
}

// finder gathers a page.
type finder struct {
	p      *store.FindParams
	dead   func(owner string) bool
	page   store.Page
	looked int
	last   row.Position // of the last row looked at
}

func (f *finder) query(c *datafile.Conn, at row.Position, rows int) error {
	p := f.p
	switch p.Kind {
	case store.FindSessions:
		return c.Query(stmtSessions, func(values row.Values) bool {
			return f.add(row.Found{
				At: row.Position{values.Int(0), values.Int(1), 0}, Kind: store.KindHead, Head: row.HeadOf(values[4:]),
				Key: session.Key{Tenant: p.Tenant, ID: values.Text(2)}, Status: session.Status(values.Text(3)),
			})
		}, p.Tenant, at[0], at[1], string(p.Status), int64(rows))
	case store.FindWaits, store.FindNotices:
		kind, of := store.KindWait, p.Tenant
		if p.Kind == store.FindNotices {
			kind, of = store.KindNotice, row.NoticesOf(p.Tenant)
		}
		from, more, err := inboxOf(c, p)
		if err != nil {
			return err
		}
		return c.Query(from, func(values row.Values) bool {
			return f.add(row.Found{
				At:   row.Position{values.Int(0), values.Int(1), values.Int(2)},
				Kind: kind, Head: row.Head{Rev: values.Int(3), Text: values.Bytes(4)},
				Key: session.Key{Tenant: p.Tenant, ID: values.Text(5)}, ID: values.Text(6),
			})
		}, append([]driver.Value{of, at[0], at[1], at[2], int64(rows)}, more...)...)
	case store.FindDue, store.FindAhead:
		due, border := stmtDue, p.Before
		if p.Kind == store.FindAhead {
			due, border = stmtAhead, p.After
		}
		return c.Query(due, func(values row.Values) bool {
			return f.add(row.Found{
				At:   row.Position{values.Int(0), values.Int(1), values.Int(2)},
				Kind: store.ItemKind(values.Text(6)), Head: row.HeadOf(values[7:]),
				Key: session.Key{Tenant: values.Text(3), ID: values.Text(4)}, ID: values.Text(5),
			})
		}, row.Bound(border), at[0], at[1], at[2], int64(rows))
	}
	return nil // Prepare accepts no other kind
}

// add takes a row into the page, if it is among what is kept, and reports whether
// to go on. The page ends at the last row taken, for what follows it is looked at anew.
func (f *finder) add(r row.Found) bool {
	item, err := r.Item(f.dead)
	keeps := !f.p.Filtered() || (err == nil || errors.Is(err, journal.ErrNeeds)) && f.p.Keeps(r.Key, &item)
	if keeps && len(f.page.Found) == f.p.Limit {
		f.page.Cursor = row.Cursor(f.p, f.last)
		return false
	}
	f.looked++
	f.last = r.At
	if !keeps {
		return true
	}
	if err != nil {
		item = r.Unread(f.p.Kind)
	}
	f.page.Found = append(f.page.Found, store.Found{Key: r.Key, Item: item, Unread: err})
	return true
}
