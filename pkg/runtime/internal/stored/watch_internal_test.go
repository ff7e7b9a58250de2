package stored

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

var watchedKey = session.Key{Tenant: session.DefaultTenant, ID: "s1"}

// told reports whether a watch was told something since it was asked last.
func told(w *Watch) bool {
	select {
	case <-w.Told():
		return true
	default:
		return false
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	st := New(Config{Store: &journalStore{}})
	other := watchedKey
	other.ID = "s2"
	every, stops, elsewhere := st.Watch(watchedKey, EveryEntry), st.Watch(watchedKey, EntriesThatStop), st.Watch(other, EveryEntry)
	require.False(t, every.Others(), "its store tells nothing")
	st.hub.wrote(watchedKey, session.StatusRunning)
	require.True(t, told(every))
	require.False(t, told(stops), "it runs on")
	st.hub.wrote(watchedKey, session.StatusSuspended)
	st.hub.wrote(watchedKey, session.StatusCompleted)
	require.True(t, told(every), "and nobody waits for who has not looked yet")
	require.True(t, told(stops))
	require.False(t, told(every), "one look shows both")
	require.False(t, told(elsewhere))

	stops.Stop()
	st.hub.wrote(watchedKey, session.StatusCompleted)
	require.False(t, told(stops))
	require.True(t, told(every))
	stops.Stop() // once more is no error
	every.Stop()
	elsewhere.Stop()
	require.Zero(t, st.hub.count.Load())
	require.Empty(t, st.hub.byKey)
}

// A step pays nothing for those who might watch.
func TestWatch_costs_a_committer_nothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	st := New(Config{Store: &journalStore{}})
	write := func() { st.hub.wrote(watchedKey, session.StatusRunning) }
	require.Zero(t, testing.AllocsPerRun(100, write))
	defer st.Watch(watchedKey, EveryEntry).Stop()
	require.Zero(t, testing.AllocsPerRun(100, write))
}

// Who begins to watch, then reads, then waits, misses nothing: no poll helps them here.
func TestWatch_misses_nothing(t *testing.T) {
	t.Parallel()
	const entries, readers = 2000, 4
	st := New(Config{Store: &journalStore{}})
	var committed atomic.Int64
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for after := int64(0); after < entries; {
				w := st.Watch(watchedKey, EveryEntry)
				for {
					if n := committed.Load(); n > after {
						after = n
						break
					}
					<-w.Told()
				}
				w.Stop()
			}
		})
	}
	for range entries {
		committed.Add(1)
		st.hub.wrote(watchedKey, session.StatusRunning)
	}
	reading.Wait()
}

// watcherStore tells when it is told to.
type watcherStore struct {
	journalStore
	changed func()
	stopped int
}

func (s *watcherStore) Watch(changed func()) (func(), bool) {
	s.changed = changed
	return func() { s.changed = nil; s.stopped++ }, true
}

var _ store.Watcher = (*watcherStore)(nil)

// A store is watched as long as a session is, and what others write is told to all.
func TestWatch_others(t *testing.T) {
	t.Parallel()
	s := &watcherStore{}
	st := New(Config{Store: s})
	require.Nil(t, s.changed)
	a, b := st.Watch(watchedKey, EveryEntry), st.Watch(session.Key{Tenant: session.DefaultTenant, ID: "s2"}, EntriesThatStop)
	require.True(t, a.Others())
	require.True(t, b.Others())
	s.changed()
	require.True(t, told(a))
	require.True(t, told(b), "nobody knows whose entry it was")
	a.Stop()
	require.NotNil(t, s.changed)
	late := s.changed
	b.Stop()
	require.Nil(t, s.changed)
	require.Equal(t, 1, s.stopped)
	late() // it was on its way
	c := st.Watch(watchedKey, EveryEntry)
	defer c.Stop()
	s.changed()
	require.True(t, told(c))
}

// Where many watch, others who write all the time do not have all of them read all the time.
func TestWatch_a_crowd_is_told_less_often(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &watcherStore{}
		st := New(Config{Store: s})
		const many = 10 * crowd
		all := make([]*Watch, many)
		for i := range all {
			all[i] = st.Watch(watchedKey, EveryEntry)
		}
		times := 0
		for range 100 { // a second
			s.changed()
			if told(all[0]) {
				times++
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.InDelta(t, 10, times, 1, "once in a tenth of a second")
		s.changed()
		time.Sleep(many * share)
		require.True(t, told(all[many-1]), "the last one is told, later")
		st.hub.wrote(watchedKey, session.StatusRunning)
		require.True(t, told(all[0]), "what is written here is told at once")
		for _, w := range all {
			w.Stop()
		}
	})
}
