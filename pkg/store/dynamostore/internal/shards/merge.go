package shards

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

const (
	// atOnce is how many shards are asked at the same time: below the
	// connections that the SDK keeps open, so that none is made for one request.
	atOnce = 8
	// rowsPerShard is how many rows of one shard a page looks at, and asksPerShard how
	// often it asks: then a short page, even an empty one, goes back with a cursor.
	rowsPerShard = 1250
	asksPerShard = 10
)

// Row is one item of a shard: where it lies, and its position in the list.
type Row[A any] struct {
	At       A
	Position string
}

// List says which shards are one list, and how they are read.
type List[A any] struct {
	// Names are the shards. Spread is over how many of them rows are expected to lie evenly.
	Names  []string
	Spread int
	// Descending says that the last position comes first.
	Descending bool
	// Ask reads a shard after a position, once, and returns the position it was read up
	// to; empty when it has no more.
	Ask func(ctx context.Context, name, after string, limit int32) (rows []Row[A], next string, err error)
}

// Merge reads the shards of a list in the order of positions. A row is handed out
// when no shard can have one before it.
type Merge[A any] struct {
	list   List[A]
	shards []shard[A]
	share  int // rows to ask a shard for, first
}

// shard is one partition of an index, as far as it was read.
type shard[A any] struct {
	name string
	rows []Row[A] // read, and not handed out
	upTo string   // the position it was read up to
	more bool     // there may be rows after that
	// looked is how many rows were asked for, in so many requests.
	looked, asked int
}

// NewMerge begins after a position. want is how many rows a page holds.
func NewMerge[A any](list List[A], after string, want int) *Merge[A] {
	m := &Merge[A]{list: list, share: share(want, list.Spread)}
	for _, name := range list.Names {
		m.shards = append(m.shards, shard[A]{name: name, upTo: after, more: true})
	}
	return m
}

// share is how many of the first rows one shard of several has, in all but a few of
// a hundred pages: what is expected and two standard deviations. More would be read
// for nothing; with fewer, most pages would ask twice.
func share(want, shards int) int {
	expected := float64(want) / float64(shards)
	return min(int(math.Ceil(expected+2*math.Sqrt(expected)))+1, want+1)
}

// toRead returns the shards that must be read before any more rows can be returned.
func (m *Merge[A]) toRead() (all []*shard[A]) {
	for i := range m.shards {
		if s := &m.shards[i]; s.more && len(s.rows) == 0 {
			all = append(all, s)
		}
	}
	return all
}

// some reports whether rows were read that were not handed out.
func (m *Merge[A]) some() bool {
	return slices.ContainsFunc(m.shards, func(s shard[A]) bool { return len(s.rows) > 0 })
}

// fill reads these shards at once, each time for twice as much. It reports false when nothing
// more can be returned: one of the shards was read for as much as a page may, and the others were
// read up to the same place.
func (m *Merge[A]) fill(ctx context.Context) (bool, error) {
	pending := m.toRead()
	if len(pending) == 0 {
		return true, nil
	}
	stop, spent := "", false // where the first one is that may not be asked again
	for _, h := range pending {
		if m.limit(h) <= 0 && (!spent || m.compare(h.upTo, stop) < 0) {
			stop, spent = h.upTo, true
		}
	}
	pending = slices.DeleteFunc(pending, func(h *shard[A]) bool { return m.limit(h) <= 0 || spent && m.compare(h.upTo, stop) >= 0 })
	return len(pending) > 0, retry.Each(len(pending), atOnce, func(i int) error {
		h, limit := pending[i], m.limit(pending[i])
		rows, next, err := m.list.Ask(ctx, h.name, h.upTo, int32(limit)) //nolint:gosec // at most rowsPerShard
		if err != nil {
			return err
		}
		h.rows, h.upTo, h.more = rows, next, next != ""
		h.looked += limit
		h.asked++
		return nil
	})
}

// limit is how many rows to ask a shard for next; none when a page may not ask it again.
func (m *Merge[A]) limit(s *shard[A]) int {
	if s.asked == asksPerShard {
		return 0
	}
	return min(m.share<<s.asked, rowsPerShard-s.looked)
}

// Another reports whether rows follow what was handed out, or may: the shards may not
// be asked again for this page.
func (m *Merge[A]) Another(ctx context.Context) (bool, error) {
	for !m.some() {
		if len(m.toRead()) == 0 {
			return false, nil
		}
		if ok, err := m.fill(ctx); err != nil || !ok {
			return true, err
		}
	}
	return true, nil
}

// Gather reads until it has so many rows, or there are no more. It returns the
// position to go on after, empty when there are no more, and whether it has looked at
// enough for one page before it had so many.
func (m *Merge[A]) Gather(ctx context.Context, after string, want int) (rows []Row[A], position string, enough bool, err error) {
	position = after
	for len(rows) < want {
		ok, err := m.fill(ctx)
		if err != nil || !ok {
			return rows, position, true, err
		}
		var some []Row[A]
		some, position = m.take(want - len(rows))
		rows = append(rows, some...)
		if position == "" {
			break
		}
	}
	return rows, position, false, nil
}

// compare orders positions as the list does.
func (m *Merge[A]) compare(a, b string) int {
	if m.list.Descending {
		a, b = b, a
	}
	return strings.Compare(a, b)
}

// take returns at most so many rows, and the position to continue after; empty when there are no
// more. If a shard has more rows, no row is returned that comes after the last one read from it.
func (m *Merge[A]) take(want int) (rows []Row[A], position string) {
	end, bounded := "", false
	for _, s := range m.shards {
		if s.more && (!bounded || m.compare(s.upTo, end) < 0) {
			end, bounded = s.upTo, true
		}
	}
	heads := make([]int, len(m.shards)) // how many of each are taken
	for len(rows) < want {
		first := -1
		for i, s := range m.shards {
			if heads[i] == len(s.rows) || bounded && m.compare(s.rows[heads[i]].Position, end) > 0 {
				continue
			}
			if first < 0 || m.compare(s.rows[heads[i]].Position, m.shards[first].rows[heads[first]].Position) < 0 {
				first = i
			}
		}
		if first < 0 {
			break
		}
		rows = append(rows, m.shards[first].rows[heads[first]])
		heads[first]++
	}
	for i := range m.shards {
		m.shards[i].rows = m.shards[i].rows[heads[i]:]
	}
	switch {
	case len(rows) == want && (bounded || m.some()):
		return rows, rows[want-1].Position
	case bounded:
		return rows, end
	}
	return rows, ""
}
