package permissions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/standing"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// MaxEarlier is how many earlier calls are shown of which a permission would have covered some: the newest.
const MaxEarlier = 20

// Book lists and revokes the permissions of sessions.
type Book struct {
	Sessions *stored.Sessions
	Registry *agent.Registry
	Now      func() time.Time
	// Digest returns that of the agent of a task as it is now.
	Digest func(session.Rules) (string, error)
}

// List returns the permissions of a session, the oldest first. Those that going back or the end of a task
// made void are gone.
func (b *Book) List(ctx context.Context, key session.Key) ([]session.ShownPermission, error) {
	s, err := b.Sessions.LoadExisting(ctx, key)
	if err != nil {
		return nil, err
	}
	defer b.Sessions.PutBack(s)
	out := make([]session.ShownPermission, 0, len(s.Permissions))
	for i := range s.Permissions {
		item, err := b.Sessions.Item(ctx, key, store.KindWait, s.Permissions[i].ID)
		if err != nil {
			return nil, err
		}
		out = append(out, b.shown(s, &s.Permissions[i], item.Wait))
	}
	return out, nil
}

func (b *Book) shown(s *session.Session, p *session.Permission, record *journal.WaitRecord) session.ShownPermission {
	out := session.ShownPermission{
		ID: p.ID, Tool: p.Tool, Arguments: p.Arguments, Standing: p.Standing, Covers: standing.Words(p.Tool, p.Standing, p.Arguments),
		State: session.PermissionValid, Who: p.Who, For: p.For, When: p.When, From: p.From,
	}
	digest, err := b.Digest(s.Rules)
	switch {
	case record != nil && record.Revoked != nil:
		out.State, out.Revoked = session.PermissionRevoked, record.Revoked
	case err != nil || digest != p.Policy || !gives(record, p):
		out.State = session.PermissionVoid
	case over(p, b.Now()):
		out.State = session.PermissionExpired
	}
	return out
}

// Revoke takes a permission back, in one conditional write of the record of its wait; repeated says that
// somebody had done so before. A step that begins after it does not use the permission. Who may see the
// session may do it: the worst that comes of it is that somebody is asked. One that is answered and not taken in
// yet is revoked as well, and never counts.
func (b *Book) Revoke(ctx context.Context, key session.Key, id string, by session.Revocation) (out session.ShownPermission, repeated bool, err error) {
	if by.Reason = strings.TrimSpace(by.Reason); by.Who == "" {
		return session.ShownPermission{}, false, refusal.New(codes.SignInRequired, key, "a permission is revoked by somebody with a name only")
	}
	if err := refusal.CheckReason(key, by.Reason); err != nil {
		return session.ShownPermission{}, false, err
	}
	s, err := b.Sessions.LoadExisting(ctx, key)
	if err != nil {
		return session.ShownPermission{}, false, err
	}
	defer b.Sessions.PutBack(s)
	item, p, err := b.given(ctx, s, id)
	switch {
	case err != nil:
		return session.ShownPermission{}, false, err
	case p == nil:
		return session.ShownPermission{}, false, refusal.New(codes.PermissionNotFound, key, "it has no standing permission %q. Going back, and the end of a task that failed or was stopped, end all that there were", id)
	case item.Wait == nil:
		return session.ShownPermission{}, false, refusal.New(codes.Corrupt, key, "there is no record of %s, with whose answer the permission was given. It does not count", id)
	case item.Wait.Revoked != nil:
		return b.shown(s, p, item.Wait), true, nil
	case journal.SealOf(item.Wait) == journal.SealBroken:
		return session.ShownPermission{}, false, refusal.New(codes.Corrupt, key, "the record of %s is not as it was written, so that the permission does not count", id)
	}
	record := *item.Wait
	by.At = b.Now().UTC()
	record.Revoked = &by
	if err := b.Sessions.Update(ctx, key, []store.Item{store.WaitItem(record, item.Rev)}); err != nil {
		return session.ShownPermission{}, false, err
	}
	return b.shown(s, p, &record), false, nil
}

// given returns the record of a wait, and the standing permission that its answer gave, or gives as soon as the
// session takes it in; nil for none.
func (b *Book) given(ctx context.Context, s *session.Session, id string) (store.Item, *session.Permission, error) {
	i := slices.IndexFunc(s.Permissions, func(p session.Permission) bool { return p.ID == id })
	if i < 0 && !slices.ContainsFunc(s.Waits, func(w session.Wait) bool { return w.ID == id }) {
		return store.Item{}, nil, nil
	}
	item, err := b.Sessions.Item(ctx, s.Key, store.KindWait, id)
	if err != nil {
		return item, nil, err
	}
	if i >= 0 {
		return item, &s.Permissions[i], nil
	}
	if r := item.Wait; r != nil && r.State == session.WaitAnswered && r.Answer.Standing != nil {
		if p, ok := engine.PermissionOf(s, *r.Answer); ok {
			return item, &p, nil
		}
	}
	return item, nil, nil
}

// Preview says what a permission would be that is given with the answer to an open approval, and which of
// the calls that the tool had before in this session it would have covered. It writes nothing.
func (b *Book) Preview(ctx context.Context, key session.Key, record journal.WaitRecord, given session.Standing) (session.PermissionPreview, error) {
	s, err := b.Sessions.LoadExisting(ctx, key)
	if err != nil {
		return session.PermissionPreview{}, err
	}
	defer b.Sessions.PutBack(s)
	w := record.Wait
	out := session.PermissionPreview{Until: given.Until, Covers: standing.Words(w.Tool, given, w.Arguments), Earlier: []session.EarlierCall{}}
	t, ok := b.Registry.Tool(record.Agent, w.Tool)
	if !ok {
		return out, nil
	}
	for _, m := range slices.Backward(s.Messages) {
		if m.Role != llm.RoleAssistant {
			continue
		}
		for _, c := range slices.Backward(m.ToolCalls()) {
			if c.Name != w.Tool || c.ID == w.Call {
				continue
			}
			if len(out.Earlier) == MaxEarlier {
				return out, nil
			}
			effective, err := t.Effective(c.Arguments)
			covered := err == nil && standing.Covers(given.Conditions, w.Arguments, effective)
			if err != nil {
				effective = c.Arguments
			}
			out.Earlier = append(out.Earlier, session.EarlierCall{Call: c.ID, Arguments: effective, Covered: covered})
		}
	}
	return out, nil
}
