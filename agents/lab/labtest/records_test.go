package labtest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// shelf is a store that holds the records of one session, and what is due.
type shelf struct {
	store.Store
	Records
	pages []store.Page
	err   error
}

func (s *shelf) Entries(context.Context, session.Key, int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for _, e := range s.Records.Entries {
			if !yield(e, nil) {
				return
			}
		}
		if s.err != nil {
			yield(journal.Entry{}, s.err)
		}
	}
}

func (s *shelf) Items(_ context.Context, _ session.Key, kind store.ItemKind, _ string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for _, run := range s.Runs {
			if kind == store.KindRun && !yield(store.RunItem(run, 1), nil) {
				return
			}
		}
		for _, wait := range s.Waits {
			if kind == store.KindWait && !yield(store.WaitItem(wait, 1), nil) {
				return
			}
		}
		for _, record := range s.Ledger {
			if kind == store.KindTool && !yield(store.ToolItem(record, 1), nil) {
				return
			}
		}
	}
}

// Find returns a page a call; the cursor is the number of the next one.
func (s *shelf) Find(_ context.Context, p store.FindParams) (store.Page, error) {
	page := s.pages[len(p.Cursor)]
	if len(p.Cursor)+1 < len(s.pages) {
		page.Cursor = p.Cursor + "."
	}
	return page, s.err
}

func TestRead(t *testing.T) {
	t.Parallel()
	want := played(t, small()).Records
	require.Equal(t, want, Read(t, &shelf{Records: want}, want.Key))
	s := want.Fold(t)
	require.Equal(t, session.StatusCompleted, s.Status)

	none := Read(t, &shelf{}, want.Key)
	require.Equal(t, Records{Key: want.Key}, none)
	require.Nil(t, none.Fold(t))

	broken := &shelf{Records: want, err: errors.New("no disk")}
	require.Contains(t, faults(func(t require.TestingT) { Read(t, broken, want.Key) }), "no disk")
}

func TestNothingDue(t *testing.T) {
	t.Parallel()
	mine, other := session.Key{Tenant: "acme", ID: "s1"}, session.Key{Tenant: "acme", ID: "s2"}
	due := store.Page{Found: []store.Found{{Key: other}}}
	for name, c := range map[string]struct {
		shelf *shelf
		keys  []session.Key
		want  string
	}{
		"nothing":              {&shelf{pages: []store.Page{{}}}, nil, ""},
		"another's":            {&shelf{pages: []store.Page{due}}, []session.Key{mine}, ""},
		"ours":                 {&shelf{pages: []store.Page{due}}, []session.Key{mine, other}, "acme/s2 is still due"},
		"anybody's":            {&shelf{pages: []store.Page{due}}, nil, "acme/s2 is still due"},
		"on a later page":      {&shelf{pages: []store.Page{{}, due}}, []session.Key{other}, "acme/s2 is still due"},
		"nobody can look":      {&shelf{pages: []store.Page{{}}, err: errors.New("no disk")}, nil, "no disk"},
		"another's, two pages": {&shelf{pages: []store.Page{due, due}}, []session.Key{mine}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := faults(func(t require.TestingT) { NothingDue(t, c.shelf, t0, c.keys...) })
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Contains(t, got, c.want)
		})
	}
}
