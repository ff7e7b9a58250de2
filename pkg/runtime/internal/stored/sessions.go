package stored

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Config is what the access to sessions needs; all of it but OnEntry and OnWait is required.
type Config struct {
	Store store.Store
	// Queue receives the wakes that the store did not send along with an entry.
	Queue queue.Queue
	Now   func() time.Time
	// CacheBytes is about how much memory the folded sessions may take that are kept.
	CacheBytes int
	// CommitTimeout bounds a write that has to outlive its context.
	CommitTimeout time.Duration
	// SweepAfter is how long after its newest entry a running session is due for the sweep.
	SweepAfter time.Duration
	// OnEntry, if there is one, is called with each entry that was committed here.
	OnEntry func(session.Key, *journal.Entry)
	// OnWait, if there is one, is told of each wait that such an entry took in or closed.
	OnWait func(session.Key, journal.WaitOver)
}

// Sessions are the sessions of a store. Its methods are safe for concurrent use.
type Sessions struct {
	cfg   Config
	cache *cache
	hub   hub
}

// New returns the sessions of a store.
func New(cfg Config) *Sessions {
	return &Sessions{cfg: cfg, cache: newCache(cfg.CacheBytes), hub: hub{store: cfg.Store}}
}

// Take returns a session that is kept folded, or nil if it is not. Either way the caller has it
// until [Sessions.PutBack] or [Sessions.Release].
func (st *Sessions) Take(key session.Key) *session.Session { return st.cache.take(key) }

// Release says that a session that was taken does not come back.
func (st *Sessions) Release(key session.Key) { st.cache.release(key) }

// Running reports whether a session is kept folded and was running when it was put back.
func (st *Sessions) Running(key session.Key) bool { return st.cache.running(key) }

// Load returns the folded session, nil if there is none. The caller owns it until
// it hands it back with [Sessions.PutBack].
func (st *Sessions) Load(ctx context.Context, key session.Key) (*session.Session, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	return st.CatchUp(ctx, key, st.cache.take(key))
}

// CatchUp folds the newest entries into a session taken from the cache, or loads it if nil.
func (st *Sessions) CatchUp(ctx context.Context, key session.Key, s *session.Session) (*session.Session, error) {
	var err error
	if s != nil {
		s, err = st.refresh(ctx, s)
	} else {
		s, err = st.loadAll(ctx, key)
	}
	if s != nil && s.Newest.Kind == session.KindDeleted {
		s = nil // the store has still to remove it
	}
	if s == nil || err != nil {
		st.cache.release(key)
	}
	return s, err
}

// refresh folds what was written since into a session the caller owns.
func (st *Sessions) refresh(ctx context.Context, s *session.Session) (*session.Session, error) {
	key := s.Key
	for e, err := range st.cfg.Store.Entries(ctx, key, s.Version) {
		if err == nil {
			err = engine.Apply(s, &e)
		}
		switch {
		case errors.Is(err, engine.ErrNeedsHistory):
			return st.loadAll(ctx, key)
		case err != nil:
			return nil, fmt.Errorf("load session %s: %w", key, err)
		}
	}
	return s, nil
}

func (st *Sessions) loadAll(ctx context.Context, key session.Key) (*session.Session, error) {
	entries, err := st.Entries(ctx, key)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	s, err := engine.Fold(key, entries)
	if err != nil {
		return nil, fmt.Errorf("load session %s: %w: %w", key, store.ErrCorrupt, err)
	}
	return s, nil
}

// Entries returns the whole journal of a session.
func (st *Sessions) Entries(ctx context.Context, key session.Key) ([]journal.Entry, error) {
	var entries []journal.Entry
	for e, err := range st.cfg.Store.Entries(ctx, key, 0) {
		if err != nil {
			return nil, fmt.Errorf("load session %s: %w", key, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// PutBack puts a folded session back into the cache.
func (st *Sessions) PutBack(s *session.Session) {
	if s != nil && s.Version > 0 {
		st.cache.put(s)
	}
}

// LoadUndeleted is [Sessions.Load] for callers that make no claim (a claim would fail on a deleted session).
// A session in the cache without a new entry was perhaps deleted: then it has a tombstone instead
// of HEAD, and HEAD is a smaller read than the newest entry.
func (st *Sessions) LoadUndeleted(ctx context.Context, key session.Key) (*session.Session, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	kept := st.cache.take(key)
	var version int64
	if kept != nil {
		version = kept.Version
	}
	s, err := st.CatchUp(ctx, key, kept)
	switch {
	case s == nil || err != nil:
		return s, err
	case s.Status.Ended() && s.Rules.Retention > 0 && !st.cfg.Now().Before(s.Newest.At.Add(s.Rules.Retention)): // as HEAD says it, too
		st.PutBack(s)
		return nil, nil //nolint:nilnil // its time is over
	case kept == nil || s.Version > version:
		return s, nil
	}
	head, err := st.Item(ctx, key, store.KindHead, "")
	if err == nil && head.Head != nil && !head.Head.Gone(st.cfg.Now()) {
		return s, nil
	}
	st.cache.release(key)
	return nil, err
}

// LoadExisting is [Sessions.LoadUndeleted] for callers that need a session: none is a
// refusal.
func (st *Sessions) LoadExisting(ctx context.Context, key session.Key) (*session.Session, error) {
	s, err := st.LoadUndeleted(ctx, key)
	if err == nil && s == nil {
		return nil, refusal.NoSession(key)
	}
	return s, err
}

// LastText is what the agent of a session said last.
func LastText(s *session.Session) string {
	for _, m := range slices.Backward(s.Messages) {
		if m.Role == llm.RoleAssistant {
			return m.Text()
		}
	}
	return ""
}
