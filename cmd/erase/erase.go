package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// page is how many sessions are found at a time, batch how many are begun: their
	// ids are written down before the first of them is deleted.
	page  = 500
	batch = 100
	// afterLease is how long after the end of its lease a worker is given to have
	// stopped.
	afterLease = 2 * time.Second
	// longest lease that is waited for: what no function of Lambda outlives.
	longestLease = 15 * time.Minute
)

// eraser deletes what one person started, and what they and others said of their absences.
type eraser struct {
	store          store.Store
	tenant, person string
	running, named bool
	// agree is nil if what the question says may be done.
	agree func(question string) error
	out   io.Writer
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

func (e *eraser) erase(ctx context.Context) error {
	left, err := e.unfinished(ctx)
	if err != nil {
		return err
	}
	heads, err := e.find(ctx)
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(id string) bool {
		return slices.ContainsFunc(heads, func(h journal.Head) bool { return h.Key.ID == id })
	})
	lines, err := e.awayLines(ctx)
	if err != nil {
		return err
	}
	e.show(heads, left)
	if lines > 0 {
		e.say("The tenant's record of who is away names %s in %s.", e.person, screen.Count(int64(lines), "line"))
	}
	if e.named {
		if err := e.showNamed(ctx, heads); err != nil {
			return err
		}
	}
	var all []string
	if n := len(heads) + len(left); n > 0 {
		all = append(all, screen.Count(int64(n), "session"))
	}
	if lines > 0 {
		all = append(all, screen.Count(int64(lines), "line")+" of who is away")
	}
	if len(all) == 0 {
		e.remains()
		return nil
	}
	if err := e.agree("Delete " + strings.Join(all, " and ") + " for good?"); err != nil {
		return err
	}
	if err := e.leaveAway(ctx); err != nil {
		return err
	}
	ids := slices.Clone(left)
	for i := range heads {
		ids = append(ids, heads[i].Key.ID)
	}
	var busy []string
	for some := range slices.Chunk(ids, batch) {
		still, err := e.deleteAll(ctx, some)
		if err != nil {
			return err
		}
		busy = append(busy, still...)
	}
	e.say("Deleted: %s.", screen.Count(int64(len(ids)-len(busy)), "session"))
	e.remains()
	if len(busy) > 0 {
		return fmt.Errorf("%s not deleted, a step of them runs: %v; run this again later, or with -running (make erase … RUNNING=1)",
			screen.Count(int64(len(busy)), "session"), busy)
	}
	return nil
}

// find returns the HEADs of what the person started, the last moved first.
func (e *eraser) find(ctx context.Context) ([]journal.Head, error) {
	var heads []journal.Head
	err := e.each(ctx, e.person, func(found store.Found) error {
		if found.Unread != nil || found.Item.Head == nil {
			return fmt.Errorf("session %s: %w", found.Key, found.Unread)
		}
		heads = append(heads, *found.Item.Head)
		return nil
	})
	return heads, err
}

// each goes through the tenant's sessions, of one user unless that is empty. One
// that moves meanwhile may be met twice, and is told once.
func (e *eraser) each(ctx context.Context, user string, do func(store.Found) error) error {
	p := store.FindParams{Kind: store.FindSessions, Tenant: e.tenant, User: user, Limit: page}
	seen := map[session.Key]bool{}
	for {
		found, err := e.store.Find(ctx, p)
		if err != nil {
			return err
		}
		for _, f := range found.Found {
			if seen[f.Key] {
				continue
			}
			seen[f.Key] = true
			if err := do(f); err != nil {
				return err
			}
		}
		if p.Cursor = found.Cursor; p.Cursor == "" {
			return nil
		}
	}
}

func (e *eraser) show(heads []journal.Head, left []string) {
	e.say("%s of tenant %s started %s.", e.person, e.tenant, screen.Count(int64(len(heads)), "session"))
	if len(left) > 0 {
		e.say("An earlier run was cut short while it deleted %s, which will be finished: %v.", screen.Count(int64(len(left)), "session"), left)
	}
	table := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	for i := range heads {
		h := &heads[i]
		_, _ = fmt.Fprint(table, screen.Sprintf("  %s\t%s\t%s\tstarted %s\n", h.Key.ID, h.Agent, h.Status, h.CreatedAt.Format(time.RFC3339)))
	}
	_ = table.Flush()
	if slices.ContainsFunc(heads, isRunning) && e.running {
		e.say("Of those that run now the step in flight cannot be called back: it writes nothing more into its session, but what its tools do outside is done, and nothing of it is remembered.")
	}
}

func isRunning(h journal.Head) bool { return h.Status == session.StatusRunning }

// deleteAll deletes sessions and returns those that run and may not be. Their ids
// are kept in a record of the tenant meanwhile: a session whose deletion has begun
// is in no list any more.
func (e *eraser) deleteAll(ctx context.Context, ids []string) (busy []string, err error) {
	if err := e.change(ctx, func(begun []string) []string { return append(begun, ids...) }); err != nil {
		return nil, err
	}
	var again []string
	var ends time.Time
	for _, id := range ids {
		until, deleted, err := e.deleteOne(ctx, session.Key{Tenant: e.tenant, ID: id})
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w; run this again, and it is finished", err)
		case !deleted:
			busy = append(busy, id)
		case !until.IsZero():
			again = append(again, id)
			if until.After(ends) {
				ends = until
			}
		}
	}
	if len(again) > 0 {
		if err := e.deleteAgain(ctx, again, ends); err != nil {
			return nil, fmt.Errorf("%w; run this again, and it is finished", err)
		}
	}
	return busy, e.change(ctx, func(begun []string) []string {
		return slices.DeleteFunc(begun, func(id string) bool { return slices.Contains(ids, id) })
	})
}

// deleteOne deletes a session unless it runs and may not be deleted then. until is
// the end of the lease of a worker that may still be at work on it.
func (e *eraser) deleteOne(ctx context.Context, key session.Key) (until time.Time, deleted bool, err error) {
	for item, err := range e.store.Items(ctx, key, store.KindHead, "") {
		switch {
		case err != nil && item.Head == nil: // what cannot be read can still be deleted
		case isRunning(*item.Head) && !item.Head.Deleted && !e.running:
			return until, false, nil
		case isRunning(*item.Head) && item.Head.Lease.Until.After(e.now()):
			until = item.Head.Lease.Until
		}
	}
	err = e.store.Delete(ctx, key)
	if errors.Is(err, store.ErrNotFound) { // of an earlier run, on a table that was put back meanwhile
		err = nil
	}
	return until, true, err
}

// deleteAgain removes what workers have left behind that did not know: never an
// entry, but mail, the ledger of a tool, or a large value.
func (e *eraser) deleteAgain(ctx context.Context, ids []string, ends time.Time) error {
	if wait := min(ends.Sub(e.now()), longestLease) + afterLease; wait > afterLease {
		e.say("Workers may still be at %s: waiting %s for their leases to end.", screen.Count(int64(len(ids)), "session"), wait.Round(time.Second))
		if err := e.sleep(ctx, wait); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := e.store.Delete(ctx, session.Key{Tenant: e.tenant, ID: id}); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// remains says what of the person is kept elsewhere, for how long.
func (e *eraser) remains() {
	e.say(`
What remains, and goes by itself:
  the table's points in time, 35 days: whoever restores one deletes them again
  earlier versions of large values in the bucket, 36 days
  a tombstone of each session: its id, its status, when it began and ended; no name
  records of idempotency keys, a day (of events 14): ids and digests
  the API's access log, as many days as the stack's LogRetentionDays: the name (sub), the address and the route of each request
  the functions' logs, as many days: ids of sessions; the name only where a caller read what waits, was turned away, or an audit line was lost
  events that started nothing, in the queue of failed events, 14 days: their whole content
What remains until somebody does something:
  sessions of others that this person answered, or that hold their name: -named (make erase … NAMED=1) lists them
  what tools have written elsewhere`)
}

// say prints a line, harmless on a terminal.
func (e *eraser) say(format string, args ...any) {
	_, _ = fmt.Fprintln(e.out, screen.Sprintf(format, args...))
}
