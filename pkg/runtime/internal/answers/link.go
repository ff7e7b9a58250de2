package answers

import (
	"context"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// MaxLinkedArguments is how large the arguments of a call may be that is decided by a link, in
// bytes: its page shows all of them.
const MaxLinkedArguments = 256 << 10

// Linked is one wait as it stands, for somebody who holds a link to it.
type Linked struct {
	Record journal.WaitRecord
	// NotAllowed says why the wait may not be answered by whom the link was made for; nil where it may.
	NotAllowed error
	// Over says that nobody can answer it any more.
	Over bool
	// Undecidable says why an open wait cannot be decided by a link; nil where it can.
	Undecidable error
}

// Linked returns a wait of a session for whom a link is made for, or for who holds one, which says nothing of
// the roles they have. A wait that there is not is refused
// with wait_not_found, as is any of a session that was deleted with session_not_found.
func (c *Checker) Linked(ctx context.Context, key session.Key, wait string, by Caller) (Linked, error) {
	if err := key.Validate(); err != nil {
		return Linked{}, err
	}
	var item store.Item
	head, err := c.cfg.Sessions.ExistingHead(ctx, key)
	if err == nil && stored.IsWait(wait) {
		item, err = c.cfg.Sessions.Item(ctx, key, store.KindWait, wait)
	}
	switch {
	case err != nil:
		return Linked{}, err
	case item.Wait == nil:
		return Linked{}, refusal.New(codes.WaitNotFound, key, "there is no wait %q", wait)
	}
	record := c.cfg.Sessions.AsOfNow(*item.Wait)
	if by, err = c.StandingIn(ctx, key, record, by); err != nil {
		return Linked{}, err
	}
	waits := head.Head.Status == session.StatusSuspended || head.Head.Status == session.StatusInterrupted
	out := Linked{Record: record, Undecidable: CheckLinkSuffices(key, record.Wait)}
	if people, _ := by.places(record.Wait); out.Undecidable == nil && len(people) == 0 && !record.Wait.IsNamed(by.Who, nil) {
		out.Undecidable = refusal.New(codes.SignInRequired, key, "%s may be answered by %s only, and a link proves no role", Label(record.Wait), whom(record.Wait))
	}
	if by.ByLink { // whom it was made for had a role then; nothing is decided by it
		if by.ByLink = false; record.Wait.Rule != nil {
			by.Roles = record.Wait.Rule.Roles
		}
	}
	out.NotAllowed = CheckWho(key, record.Wait, by)
	out.Over = record.State != session.WaitOpen || c.cfg.Sessions.Overdue(record) || !waits
	return out, nil
}

// CheckLinkSuffices refuses to have a wait decided by a link. It is the one place that says for
// which waits the proof of a link is enough: whoever holds it received it, and that is all it says.
func CheckLinkSuffices(key session.Key, w session.Wait) error {
	switch {
	case w.Kind != session.WaitApproval:
		return refusal.New(codes.WrongKind, key, "%s is no approval, and a link decides approvals only", Label(w))
	case w.NeedsSignIn():
		return refusal.New(codes.SignInRequired, key, "%s asks for more than a link proves: it is decided by somebody who has signed in", Label(w))
	case w.Nonce == "" || w.Digest == "":
		return refusal.New(codes.NotAllowed, key, "%s does not say what is to be approved, so that no link can", Label(w))
	case len(w.Arguments) > MaxLinkedArguments:
		return refusal.New(codes.NotAllowed, key, "%s has arguments of %d bytes, and a page shows %d at most", Label(w), len(w.Arguments), MaxLinkedArguments)
	}
	return nil
}

// checkByLink refuses an answer by a link that is not for exactly the wait and the arguments that
// its page showed. Here neither may be left out.
func checkByLink(key session.Key, w session.Wait, a session.Answer) error {
	if err := CheckLinkSuffices(key, w); err != nil {
		return err
	}
	switch {
	case a.ApprovalID != w.Nonce || a.Digest != w.Digest:
		return refusal.New(codes.WaitNotFound, key, "the link was made for something that does not wait here")
	case a.EditedInput != nil:
		return refusal.New(codes.NotAllowed, key, "%s: a link approves what was shown, and edits nothing", Label(w))
	}
	return nil
}
