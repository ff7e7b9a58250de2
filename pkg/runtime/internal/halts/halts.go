// Package halts keeps the kill switch: which sessions do no step.
//
// All halts are in one record of the store, which belongs to no tenant, so that one read says
// everything. A process reads it (halts.go) before a step begins, at most once a second; callers
// change it (change.go).
package halts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// recordName names the record.
	recordName = "halts"
	// every is how long it takes at least from one read to the next.
	every = time.Second
	// Counts is how long what was read counts: under the two seconds after which no step may
	// begin that a halt holds, with time left for the step to begin.
	Counts = 1800 * time.Millisecond
)

// errSlow: what a read brings counts no more.
var errSlow = fmt.Errorf("%w: which steps are halted was not read in %v", store.ErrUnavailable, Counts)

// everywhere is the key of the record.
var everywhere = session.Key{Tenant: store.Everywhere}

// record is the value of the record.
type record struct {
	Halts []session.Halt `json:"halts"`
}

// Config is what halts need; all of it is required but OnHalt.
type Config struct {
	Store    store.Store
	Registry *agent.Registry
	Now      func() time.Time
	// OnHalt is told each time a session is found that a halt holds.
	OnHalt func(session.Key, session.Halt)
}

// Halts says which sessions do no step. Its methods are safe for concurrent use.
type Halts struct {
	cfg Config

	mu sync.Mutex
	// known is what was read at readAt; never written, but replaced.
	known  []session.Halt
	readAt time.Time
	// triedAt is when it was tried last, and failed what came of it.
	triedAt time.Time
	failed  error
	// reading is closed when the read under way is over; nil when there is none. changed says that
	// this process has changed the record since it began.
	reading chan struct{}
	changed bool
}

// New returns the halts of a store.
func New(cfg Config) *Halts { return &Halts{cfg: cfg} }

// Of returns the halt for which the sessions of an agent of a tenant do no step now, nil if there
// is none. It reads the store at most once a second, and only when asked: a process without work
// reads nothing. An error means that it is not known, and then no step may begin either: a kill
// switch that fails while the store is in trouble would be none, and the step could not commit.
func (h *Halts) Of(ctx context.Context, tenant, agent string) (*session.Halt, error) {
	known, err := h.current(ctx)
	if err != nil {
		return nil, err
	}
	return holding(known, tenant, agent), nil
}

// Hold is [Halts.Of] for who would do, or send for, a step of a session: it reports whether that has
// to be left undone.
func (h *Halts) Hold(ctx context.Context, key session.Key, agent string) (bool, error) {
	halt, err := h.Of(ctx, key.Tenant, agent)
	if halt != nil && h.cfg.OnHalt != nil {
		h.cfg.OnHalt(key, *halt)
	}
	return halt != nil, err
}

// holding returns the halt of widest scope that holds the sessions of an agent of a tenant: one that
// is lifted only to find the next is no news.
func holding(halts []session.Halt, tenant, agent string) *session.Halt {
	var found *session.Halt
	for i := range halts {
		halt := &halts[i]
		if halt.Holds(tenant, agent) && (found == nil || width(halt) > width(found)) {
			found = halt
		}
	}
	if found == nil {
		return nil
	}
	own := *found
	return &own
}

func width(h *session.Halt) (w int) {
	if h.Tenant == "" {
		w += 4
	}
	if h.Agent == "" {
		w += 2
	}
	if h.ByOperator {
		w++
	}
	return w
}

// current returns all halts as they were less than [Counts] ago.
func (h *Halts) current(ctx context.Context) ([]session.Halt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.wall()
	valid := within(h.readAt, now, Counts)
	switch {
	case within(h.readAt, now, every), valid && (h.reading != nil || within(h.triedAt, now, every)):
		return h.known, nil
	case h.reading != nil:
		if err := h.await(ctx); err != nil {
			return nil, err
		}
	case h.failed == nil || !within(h.triedAt, now, every):
		h.read(ctx, now)
	}
	switch {
	case within(h.readAt, h.wall(), Counts):
		return h.known, nil
	case h.failed == nil:
		return nil, errSlow
	}
	return nil, h.failed
}

// wall is the clock without its monotonic part, which may stand still while a process is frozen
// between two invocations.
func (h *Halts) wall() time.Time { return h.cfg.Now().Round(0) }

// within reports whether now is less than so long after a time. A clock that was set back makes
// that unknown.
func within(t, now time.Time, d time.Duration) bool {
	age := now.Sub(t)
	return !t.IsZero() && age >= 0 && age < d
}

// await waits for the read under way, with the lock given up meanwhile.
func (h *Halts) await(ctx context.Context) error {
	reading := h.reading
	h.mu.Unlock()
	defer h.mu.Lock()
	select {
	case <-reading:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read reads the record, with the lock given up meanwhile. Others may wait for it, so the end of
// the caller's work does not end it.
func (h *Halts) read(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), Counts, errSlow)
	defer cancel()
	reading := make(chan struct{})
	h.reading, h.changed, h.triedAt = reading, false, now
	h.mu.Unlock()
	var halts []session.Halt
	err := fmt.Errorf("read halts: %w", store.ErrUnavailable) // where the store panics
	defer func() {
		h.mu.Lock()
		if h.reading = nil; err == nil && !h.changed {
			h.known, h.readAt = halts, now
		}
		h.failed = err
		close(reading)
	}()
	halts, _, err = h.load(ctx)
}

// load reads the record as it is, with the item it is in.
func (h *Halts) load(ctx context.Context) ([]session.Halt, store.Item, error) {
	var r record
	item, err := store.ReadTenantRecord(ctx, h.cfg.Store, store.Everywhere, recordName, &r)
	if err != nil {
		return nil, item, fmt.Errorf("read halts: %w", err)
	}
	return r.Halts, item, nil
}
