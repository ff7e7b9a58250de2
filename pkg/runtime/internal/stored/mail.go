package stored

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Mail returns the mail of a session that neither an entry has, nor taken, in its order: as much as
// has at most so many bytes, and at least one. whole says that no more is there.
func (st *Sessions) Mail(ctx context.Context, s *session.Session, taken []string, most int) (ids []string, messages []llm.Message, whole bool, err error) {
	items, err := st.Items(ctx, s.Key, store.KindMail, "")
	if err != nil {
		return nil, nil, false, err
	}
	for _, item := range items {
		if s.Mail[item.ID] || slices.Contains(taken, item.ID) {
			continue
		}
		size := engine.EncodedSize(item.Mail.Message)
		if size > most && len(ids) > 0 {
			return ids, messages, false, nil
		}
		most -= size
		ids, messages = append(ids, item.ID), append(messages, item.Mail.Message)
	}
	return ids, messages, true, nil
}
