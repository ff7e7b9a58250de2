package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestLeftOut: every answer that shows a wait says what of it could not be sent.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	const most = 8_000
	w := newWorld(t, change{api: func(cfg *httpapi.Config) {
		cfg.Fits = func(_ *http.Request, body []byte) bool { return len(body) <= most }
	}})
	w.start("a", "big")
	shown := []client.Wait{
		get[client.Session](w, ann, "/sessions/a").Pause.Pending[0],
		get[client.Waits](w, ann, "/sessions/a/waits").Items[0],
		get[client.Waits](w, ann, "/waits").Items[0],
	}
	for _, wait := range shown {
		require.Len(t, wait.LeftOut, 1)
		require.NotEmpty(t, wait.ApprovalID+wait.WaitID)
		require.Greater(t, wait.LeftOut[0].Bytes, int64(4_000))
		require.Equal(t, shown[0].LeftOut, wait.LeftOut)
		if wait.LeftOut[0].At == "/arguments" {
			require.Equal(t, wait.Digest, wait.LeftOut[0].Digest)
		}
	}
	page := get[client.Entries](w, ann, "/sessions/a/entries")
	require.NotEmpty(t, page.LeftOut)
	require.True(t, page.Resting)
}

// unreadable is a store of which the values of waits cannot be read.
type unreadable struct{ store.Store }

func (u *unreadable) on(s store.Store) { u.Store = s }

func (u *unreadable) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	page, err := u.Store.Find(ctx, p)
	for i, f := range page.Found {
		if f.Item.Wait != nil {
			page.Found[i].Item.Wait = &journal.WaitRecord{Wait: session.Wait{ID: f.Item.ID, OpenedAt: f.Item.Wait.Wait.OpenedAt}, State: session.WaitOpen}
			page.Found[i].Unread = store.ErrCorrupt
		}
	}
	return page, err
}

// TestInbox_of_what_cannot_be_read: it is listed, as left out, in the words of the document.
func TestInbox_of_what_cannot_be_read(t *testing.T) {
	t.Parallel()
	w := newWorld(t, change{runtime: func(cfg *runtime.Config) { cfg.Store = &unreadable{} }})
	w.start("a", "deploy")
	out := w.send(ann, http.MethodGet, "/waits", "")
	raw := bytes.Clone(out.Body.Bytes())
	wait := answer[client.Waits](w, http.StatusOK, out).Items[0]
	require.Equal(t, client.Wait{
		SessionID: "a", WaitID: wait.WaitID, State: session.WaitOpen, Arguments: wait.Arguments, OpenedAt: wait.OpenedAt, LeftOut: []client.LeftOut{{}},
	}, wait)
	require.True(t, strings.HasPrefix(string(wait.Arguments), `"[left out: `))
	require.NotZero(t, wait.OpenedAt)
	var body any
	require.NoError(t, json.Unmarshal(raw, &body))
	require.NoError(t, document(t).Components.Schemas["Waits"].Value.VisitJSON(body))
	require.NotEmpty(t, get[client.Waits](w, ann, "/sessions/a/waits").Items[0].ApprovalID)
}
