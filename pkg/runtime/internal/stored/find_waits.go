package stored

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// maxFinds is how often the store is asked for one page of waits of which only some are kept.
const maxFinds = 10

// WaitFilter keeps waits by what no index has.
type WaitFilter struct {
	// OpenedBefore keeps those that were opened before; zero means all.
	OpenedBefore time.Time
	// Text keeps those with that text in their tool, arguments, question or words, in small letters or
	// capitals; empty means all.
	Text string
	// Risk keeps those whose tool says that of the call; empty means all.
	Risk session.Risk
	// People keeps those that one of several people may answer by name, or by a role that is not known here;
	// empty means all.
	People []string
}

func (f WaitFilter) none() bool {
	return len(f.People) == 0 && f.OpenedBefore.IsZero() && f.Text == "" && f.Risk == ""
}

// keeps reports whether a wait is kept. Of one that could not be read it is not known what it says.
func (f WaitFilter) keeps(found store.Found) bool {
	w := found.Item.Wait.Wait
	if !f.OpenedBefore.IsZero() && !w.OpenedAt.Before(f.OpenedBefore) {
		return false
	}
	if len(f.People) > 0 && !slices.ContainsFunc(f.People, w.IsFor) {
		return false
	}
	if f.Risk != "" && (w.Preview == nil || w.Preview.Risk != f.Risk) {
		return false
	}
	return f.Text == "" || found.Unread == nil && says(w, strings.ToLower(f.Text))
}

func says(w session.Wait, text string) bool {
	all := []string{w.Tool, w.Text, string(w.Arguments)}
	if q := w.Question; q != nil {
		all = append(all, q.Text)
		for _, c := range q.Choices {
			all = append(all, c.ID, c.Label)
		}
	}
	for _, s := range all {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return false
}

// FindWaits returns a page of open waits that a filter keeps. Where it keeps only some the store is asked
// a bounded number of times, each time for as many as there is still room for; then the page is short,
// even empty, and its cursor goes on where it ended.
func (st *Sessions) FindWaits(ctx context.Context, p store.FindParams, filter WaitFilter) (store.Page, error) {
	if err := p.Prepare(); err != nil { // it sets the limit
		return st.cfg.Store.Find(ctx, p)
	}
	var out store.Page
	want := p.Limit
	for range maxFinds {
		p.Limit = want - len(out.Found)
		page, err := st.cfg.Store.Find(ctx, p)
		if err != nil || filter.none() {
			return page, err
		}
		for _, found := range page.Found {
			if filter.keeps(found) {
				out.Found = append(out.Found, found)
			}
		}
		out.Cursor, p.Cursor = page.Cursor, page.Cursor
		if page.Cursor == "" || len(out.Found) == want {
			break
		}
	}
	return out, nil
}
