package dynamostore

import (
	"context"
	"math"
	"slices"
)

const (
	// shardsAtOnce is how many shards are asked at the same time: below the
	// connections that the SDK keeps open, so that none is made for one request.
	shardsAtOnce = 8
	// rowsPerShard is how many rows of one shard a page looks at, and asksPerShard how
	// often it asks: then a short page, even an empty one, goes back with a cursor.
	rowsPerShard = 1250
	asksPerShard = 10
)

// row is one item with the attributes that an index has.
type row struct {
	at       address
	position string
}

// merge reads the shards of a search as one list in the order of positions. A row is
// handed out when no shard can have one before it.
type merge struct {
	q      *search
	shards []shard
	share  int // rows to ask a shard for, first
}

// shard is one partition of an index, as far as it was read.
type shard struct {
	name string
	rows []row  // read, and not handed out
	upTo string // the position it was read up to
	more bool   // there may be rows after that
	// looked is how many rows were asked for, in so many requests.
	looked, asked int
}

// newMerge begins after a position. want is how many rows a page holds.
func newMerge(q *search, after string, want int) *merge {
	m := &merge{q: q, share: share(want, q.spread)}
	for _, name := range q.shards {
		m.shards = append(m.shards, shard{name: name, upTo: after, more: true})
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
func (m *merge) toRead() (all []*shard) {
	for i := range m.shards {
		if s := &m.shards[i]; s.more && len(s.rows) == 0 {
			all = append(all, s)
		}
	}
	return all
}

// some reports whether rows were read that were not handed out.
func (m *merge) some() bool {
	return slices.ContainsFunc(m.shards, func(s shard) bool { return len(s.rows) > 0 })
}

// fill reads these shards at once, each time for twice as much. It reports false when nothing
// more can be returned: one of the shards was read for as much as a page may, and the others were
// read up to the same place.
func (s *Store) fill(ctx context.Context, m *merge) (bool, error) {
	pending := m.toRead()
	if len(pending) == 0 {
		return true, nil
	}
	stop, spent := "", false // where the first one is that may not be asked again
	for _, h := range pending {
		if m.limit(h) <= 0 && (!spent || m.q.compare(h.upTo, stop) < 0) {
			stop, spent = h.upTo, true
		}
	}
	pending = slices.DeleteFunc(pending, func(h *shard) bool { return m.limit(h) <= 0 || spent && m.q.compare(h.upTo, stop) >= 0 })
	return len(pending) > 0, each(len(pending), shardsAtOnce, func(i int) error {
		h, limit := pending[i], m.limit(pending[i])
		rows, next, err := s.ask(ctx, m.q, h.name, h.upTo, int32(limit)) //nolint:gosec // at most rowsPerShard
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
func (m *merge) limit(s *shard) int {
	if s.asked == asksPerShard {
		return 0
	}
	return min(m.share<<s.asked, rowsPerShard-s.looked)
}

// gather reads until it has so many rows, or there are no more. It returns the
// position to go on after, empty when there are no more, and whether it has looked at
// enough for one page before it had so many.
func (s *Store) gather(ctx context.Context, m *merge, after string, want int) (rows []row, position string, enough bool, err error) {
	position = after
	for len(rows) < want {
		ok, err := s.fill(ctx, m)
		if err != nil || !ok {
			return rows, position, true, err
		}
		var some []row
		some, position = m.take(want - len(rows))
		rows = append(rows, some...)
		if position == "" {
			break
		}
	}
	return rows, position, false, nil
}

// take returns at most so many rows, and the position to continue after; empty when there are no
// more. If a shard has more rows, no row is returned that comes after the last one read from it.
func (m *merge) take(want int) (rows []row, position string) {
	end, bounded := "", false
	for _, s := range m.shards {
		if s.more && (!bounded || m.q.compare(s.upTo, end) < 0) {
			end, bounded = s.upTo, true
		}
	}
	heads := make([]int, len(m.shards)) // how many of each are taken
	for len(rows) < want {
		first := -1
		for i, s := range m.shards {
			if heads[i] == len(s.rows) || bounded && m.q.compare(s.rows[heads[i]].position, end) > 0 {
				continue
			}
			if first < 0 || m.q.compare(s.rows[heads[i]].position, m.shards[first].rows[heads[first]].position) < 0 {
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
		return rows, rows[want-1].position
	case bounded:
		return rows, end
	}
	return rows, ""
}
