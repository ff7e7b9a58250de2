package row

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// A time comes back as it was, or as the nearest that can be kept; the zero time is 0.
func TestNanos(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	require.Equal(t, at, Time(Nanos(at)))
	require.Zero(t, Nanos(time.Time{}))
	require.True(t, Time(0).IsZero())
	require.EqualValues(t, math.MinInt64, Nanos(time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)))
	late := Nanos(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Less(t, late, int64(never), "a wait with a deadline comes before those without")
	require.Less(t, Bound(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), late)
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	for _, r := range []Receipt{{Message: 1, Receives: 1}, {Dead: true, Message: math.MaxInt64, Receives: 40}} {
		back, err := ParseReceipt(r.String())
		require.NoError(t, err)
		require.Equal(t, r, back)
	}
}

// A cursor is that of one search.
func TestCursor(t *testing.T) {
	t.Parallel()
	p := store.FindParams{Kind: store.FindWaits, Tenant: "t", Limit: 5}
	at := Position{1, -2, 3}
	p.Cursor = Cursor(&p, at)
	back, err := ParseCursor(&p)
	require.NoError(t, err)
	require.Equal(t, at, back)
	p.Tenant = "another"
	_, err = ParseCursor(&p)
	require.ErrorIs(t, err, store.ErrInvalidCursor)
}

// HEAD is decoded once, and what is handed out shares nothing with what is kept, or with what was
// handed out before. A field of a kind that the copy does not know fails here.
func TestHead_is_handed_out_as_a_copy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	full := journal.Head{
		Key: session.Key{Tenant: "t", ID: "s"}, Status: session.StatusRunning, Agent: "a", Tags: []string{"one"},
		Parent: &session.Parent{Session: "p"}, ForkedFrom: &session.Fork{Session: "o"}, Signal: &journal.Signal{ID: "i", At: at}, Due: &at, CancelAt: &at, CreatedAt: at, UpdatedAt: at,
	}
	item := store.HeadItem(full, 0)
	text, err := item.Record()
	require.NoError(t, err)
	h := Head{Rev: 3, Text: text, Lease: journal.Lease{Owner: "o", Seq: 4}}
	h.Keep()
	other := h // as after a claim
	other.Lease.Seq = 5
	alive := func(string) bool { return false }
	first, err := h.Item(alive)
	require.NoError(t, err)
	require.NotNil(t, h.decoded.Load())
	first.Head.Tags[0] = "x"
	for range 2 {
		before := reflect.ValueOf(first.Head).Elem()
		next, err := other.Item(alive)
		require.NoError(t, err)
		require.EqualValues(t, 5, next.Head.Lease.Seq)
		require.EqualValues(t, 3, next.Rev)
		require.Equal(t, full.Tags, next.Head.Tags)
		require.Equal(t, full.Parent, next.Head.Parent)
		require.Equal(t, full.Signal, next.Head.Signal)
		require.True(t, next.Head.Due.Equal(at))
		now := reflect.ValueOf(next.Head).Elem()
		for i := range now.NumField() {
			name := now.Type().Field(i).Name
			switch now.Field(i).Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Chan, reflect.Func:
				if name == "kept" { // of a newer program: it is only read
					continue
				}
				require.False(t, now.Field(i).IsNil(), "%s is set above", name)
				require.NotEqual(t, before.Field(i).Pointer(), now.Field(i).Pointer(), name)
			}
		}
		first = next
		next.Head.Tags[0], next.Head.Parent.Session, next.Head.Signal.ID, *next.Head.Due = "x", "x", "x", at.Add(1)
	}

	spoilt := Head{Rev: 1, Text: []byte("{")}
	spoilt.Keep()
	for range 2 {
		_, err := spoilt.Item(alive)
		require.ErrorIs(t, err, store.ErrCorrupt)
	}
}
