package notice

import (
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

const (
	// linkLasts is how long a link in a notice lasts, unless the deadline of its wait comes before.
	linkLasts = 24 * time.Hour
	// maxLinked is how large the arguments may be that the page of a link shows, and so decides on.
	maxLinked = 256 << 10
)

// Grants are what links are signed with by which a recipient decides.
type Grants struct {
	Keys grant.Keys
	// URL is where they begin, before /a/TOKEN.
	URL string
}

// RecipientLink is a link by which whoever holds it decides as one person.
type RecipientLink struct {
	Who       string    `json:"who"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// links returns a link for each person that an open approval names, of a delegation for the one it was delegated
// to alone. There are none where a link is not enough, or where it is not known who may answer; the door that a
// link leads to looks at all of that again.
func (m Message) links(record *journal.WaitRecord, told journal.NoticeWait) ([]RecipientLink, error) {
	grants, now := m.sender.cfg.Grants, m.sender.cfg.Now().UTC()
	if grants == nil || grants.Keys.IsZero() || grants.URL == "" || record == nil || record.State != session.WaitOpen || journal.SealOf(record) == journal.SealBroken {
		return nil, nil
	}
	w := record.Wait
	expires := now.Add(linkLasts)
	if w.Deadline != nil && w.Deadline.At.Before(expires) {
		expires = w.Deadline.At
	}
	expires = expires.Add(time.Second - 1).Truncate(time.Second).UTC() // tokens know whole seconds
	notRequester := w.Rule != nil && w.Rule.NotRequester
	if w.Kind != session.WaitApproval || w.NeedsSignIn() || w.Nonce == "" || w.Digest == "" || len(w.Arguments) > maxLinked || !expires.After(now) || notRequester && len(w.Requesters) == 0 {
		return nil, nil
	}
	var links []RecipientLink
	for _, who := range w.Who {
		if told.To != "" && who != told.To || notRequester && slices.Contains(w.Requesters, who) {
			continue
		}
		token, err := grants.Keys.Sign(grant.Grant{
			Tenant: m.Key.Tenant, Session: m.Key.ID, Wait: w.ID, Nonce: w.Nonce, Digest: w.Digest, Decisions: grant.Decisions(), Recipient: who, Expires: expires,
		})
		if err != nil {
			return nil, fmt.Errorf("%w: link: %w", ErrPermanent, err)
		}
		links = append(links, RecipientLink{Who: who, URL: grants.URL + "/a/" + token, ExpiresAt: expires})
	}
	return links, nil
}
