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

// row is one item as an index knows it.
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
	more bool   // there may be rows behind that
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

// hungry are the shards that must be asked before any more rows can be handed out.
func (m *merge) hungry() (all []*shard) {
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

// fill asks all hungry shards at once, each time for twice as much. It reports false
// where one of them was asked for as much as a page may.
func (s *Store) fill(ctx context.Context, m *merge) (bool, error) {
	hungry := m.hungry()
	limits := make([]int32, len(hungry))
	for i, h := range hungry {
		limit := min(m.share<<h.asked, rowsPerShard-h.looked)
		if limit <= 0 || h.asked == asksPerShard {
			return false, nil
		}
		limits[i] = int32(limit) //nolint:gosec // at most rowsPerShard
	}
	return true, each(len(hungry), shardsAtOnce, func(i int) error {
		h := hungry[i]
		rows, next, err := s.ask(ctx, m.q, h.name, h.upTo, limits[i])
		if err != nil {
			return err
		}
		h.rows, h.upTo, h.more = rows, next, next != ""
		h.looked += int(limits[i])
		h.asked++
		return nil
	})
}

// take hands out at most so many rows, and the position to go on after; empty when
// there are no more. Nothing is taken from behind the place up to which a shard was
// read that has more.
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
