package audit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// maxViewers is of how many callers, each with its origin, a wait has a line that they read it;
	// maxOrigins is how many of these one caller takes up, so that nobody uses all of them.
	maxViewers, maxOrigins = 20, 4
	// viewTimeout bounds how long a read may take longer for such a line.
	viewTimeout = time.Second
	// viewsAtOnce is how many waits one write may have: each has a record and a line.
	viewsAtOnce = store.MaxItems / 2
)

// Viewer records who has read waits.
type Viewer struct {
	Sessions *stored.Sessions
	Now      func() time.Time
	Log      *slog.Logger
}

// Viewed records that a caller reads what open waits show, once for each caller and origin, and at most
// for so many of them, a few of one caller. Where that is recorded already it costs nothing. What cannot be written is logged
// and forgotten: the read goes on, and the next one tries again.
func (v Viewer) Viewed(ctx context.Context, key session.Key, who, from string, waits []journal.WaitRecord) {
	tag := viewer(who, from)
	var fresh []string
	for i := range waits {
		if takesView(&waits[i], tag) {
			fresh = append(fresh, waits[i].Wait.ID)
		}
	}
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	for ids := range slices.Chunk(fresh, viewsAtOnce) {
		if err := v.write(ctx, key, who, from, ids); err != nil {
			v.Log.DebugContext(ctx, "audit of a read wait", "session", key.String(), "waits", ids, "who", who, "error", err)
			return
		}
	}
}

// write adds the lines to the waits as they are now.
func (v Viewer) write(ctx context.Context, key session.Key, who, from string, ids []string) error {
	var items []store.Item
	for _, at := range seqs(ids) {
		found, err := v.Sessions.WaitsAt(ctx, key, at)
		if err != nil {
			return err
		}
		for _, item := range found {
			record := *item.Wait
			if !slices.Contains(ids, item.ID) || !takesView(&record, viewer(who, from)) {
				continue
			}
			line, ok := record.AddAudit(key, journal.Audit{Kind: journal.AuditViewed, Who: who, From: from, At: v.Now()})
			if !ok {
				continue
			}
			record.ViewedBy = append(slices.Clone(record.ViewedBy), viewer(who, from))
			items = append(items, store.WaitItem(record, item.Rev), store.AuditItem(line))
		}
	}
	err := v.Sessions.Update(ctx, key, items)
	if errors.Is(err, store.ErrConflict) {
		return nil // it is being answered, or somebody else reads it: not worth another try
	}
	return err
}

// seqs are those of the entries that opened waits.
func seqs(waits []string) []int64 {
	var out []int64
	for _, wait := range waits {
		if at := openedAt(wait); !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// takesView reports whether it is to be recorded that somebody has read a wait. Half of the lines are kept for
// answers that are refused.
func takesView(r *journal.WaitRecord, tag string) bool {
	if r.State != session.WaitOpen || len(r.ViewedBy) >= maxViewers || r.Audit.Count >= journal.MaxAudit/2 ||
		journal.SealOf(r) == journal.SealBroken || slices.Contains(r.ViewedBy, tag) {
		return false
	}
	caller, _, _ := strings.Cut(tag, ".")
	origins := 0
	for _, seen := range r.ViewedBy {
		if strings.HasPrefix(seen, caller+".") {
			origins++
		}
	}
	return origins < maxOrigins
}

// viewer is a short name of a caller with an origin: that of the caller, a dot, that of both.
func viewer(who, from string) string {
	const enough = 6 // bytes: of at most maxViewers, for one wait
	caller, both := sha256.Sum256([]byte(who)), sha256.Sum256([]byte(who+"\n"+from))
	return base64.RawURLEncoding.EncodeToString(caller[:enough]) + "." + base64.RawURLEncoding.EncodeToString(both[:enough])
}
