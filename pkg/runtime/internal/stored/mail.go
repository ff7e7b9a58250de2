package stored

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Mail returns the mail of a session that neither an entry has, nor taken, in its order: as much as
// has at most so many bytes, and at least one. whole says that no more is there.
func (st *Sessions) Mail(ctx context.Context, s *session.Session, taken []string, most int) (mail []journal.Mail, whole bool, err error) {
	items, err := st.Items(ctx, s.Key, store.KindMail, "")
	if err != nil {
		return nil, false, err
	}
	for _, item := range items {
		if s.Mail[item.ID] || slices.Contains(taken, item.ID) {
			continue
		}
		size := engine.EncodedSize(item.Mail.Message)
		if size > most && len(mail) > 0 {
			return mail, false, nil
		}
		most -= size
		mail = append(mail, *item.Mail)
	}
	return mail, true, nil
}
