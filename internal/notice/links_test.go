package notice_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestPayload_links: each person an open approval names has a link of their own, for what a link is enough for
// and while it is open; nothing that decides is stored or logged.
func TestPayload_links(t *testing.T) {
	t.Parallel()
	keys, err := grant.ParseKeys(grant.FormatKey("one", []byte(strings.Repeat("k", 32))))
	require.NoError(t, err)
	asked := approval
	asked.Who, asked.Nonce, asked.Digest = []string{"ana", "ben"}, "n1", journal.Digest(asked.Arguments)
	for name, c := range map[string]struct {
		change func(w *session.Wait, record *journal.WaitRecord, shows *notice.Shows, grants *notice.Grants)
		want   []string
	}{
		"two people": {func(*session.Wait, *journal.WaitRecord, *notice.Shows, *notice.Grants) {}, []string{"ana", "ben"}},
		"not said": {func(_ *session.Wait, _ *journal.WaitRecord, shows *notice.Shows, _ *notice.Grants) {
			shows.Links = false
		}, nil},
		"no keys":    {func(_ *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, g *notice.Grants) { g.Keys = grant.Keys{} }, nil},
		"no address": {func(_ *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, g *notice.Grants) { g.URL = "" }, nil},
		"everybody":  {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) { w.Who = nil }, nil},
		"a question": {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) {
			w.Kind = session.WaitQuestion
		}, nil},
		"no nonce":  {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) { w.Nonce = "" }, nil},
		"no digest": {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) { w.Digest = "" }, nil},
		"several needed": {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) {
			w.Rule = &session.AnswerRule{Need: 2}
		}, nil},
		"signed in": {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) {
			w.Rule = &session.AnswerRule{Assurance: session.AssuranceSignedIn}
		}, nil},
		"overdue": {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) {
			w.Deadline = &session.Deadline{At: time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)}
		}, nil},
		"answered": {func(_ *session.Wait, r *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) {
			r.State = session.WaitClosed
		}, nil},
		"who asked": {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) {
			w.Rule, w.Requesters = &session.AnswerRule{NotRequester: true}, []string{"ana"}
		}, []string{"ben"}},
		"nobody who asked": {func(w *session.Wait, _ *journal.WaitRecord, _ *notice.Shows, _ *notice.Grants) {
			w.Rule = &session.AnswerRule{NotRequester: true}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var payload notice.Payload
			wait, grants, shows := asked, notice.Grants{Keys: keys, URL: "https://api.example.com"}, notice.Shows{Links: true}
			record := journal.WaitRecord{State: session.WaitOpen, Agent: "support"}
			c.change(&wait, &record, &shows, &grants)
			record.Wait = wait
			ch := &channel{name: "webhook", send: func(ctx context.Context, m notice.Message) (_ json.RawMessage, err error) {
				payload, err = m.Payload(ctx, shows)
				return nil, err
			}}
			w := newWorld(t, ch)
			w.sender = notice.NewSender(notice.Config{Store: w.store, Channels: []notice.Channel{ch}, Now: func() time.Time { return w.now }, Grants: &grants})
			w.commit(session.KindSuspended, session.StatusSuspended, wait)
			for item, err := range w.store.Items(t.Context(), key, store.KindWait, wait.ID) {
				require.NoError(t, err)
				_, err = w.store.Update(t.Context(), key, store.WaitItem(record, item.Rev))
				require.NoError(t, err)
			}
			w.send(first)
			var who []string
			for _, link := range payload.Data.Waits[0].Links {
				token, ours := strings.CutPrefix(link.URL, "https://api.example.com/a/")
				require.True(t, ours, link.URL)
				g, err := keys.Read(token, w.now)
				require.NoError(t, err)
				require.Equal(t, grant.Grant{
					Tenant: "acme", Session: "s1", Wait: "w1-1", Nonce: "n1", Digest: wait.Digest, Decisions: grant.Decisions(), Recipient: link.Who, Expires: w.now.Add(24 * time.Hour),
				}, g)
				who = append(who, link.Who)
			}
			require.Equal(t, c.want, who)
			stored, err := json.Marshal(w.notice(first))
			require.NoError(t, err)
			require.NotContains(t, string(stored)+w.log.String(), grant.Prefix)
		})
	}
}
