package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// linkViews are the lines of an audit which say that somebody has read a wait.
func (w *world) linkViews(id string) (views []session.AuditLine) {
	w.Helper()
	lines, err := w.Audit(w.Context(), session.Key{Tenant: "acme", ID: id})
	require.NoError(w, err)
	for _, line := range lines {
		if line.Kind == session.AuditViewed {
			views = append(views, line)
		}
	}
	return views
}

// TestLink_read_is_recorded: who opens a link has read the wait, as whom it was made for, once for each address
// and at most four times, however often it is opened.
func TestLink_read_is_recorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.start("trip", "deploy")
	path := w.link(ann, "trip", "w2-1", "")
	before := w.dump()
	open := func(method, from string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.RemoteAddr = from
		return w.serve(r).Code
	}
	require.Equal(t, http.StatusOK, open(http.MethodHead, "192.0.2.7:1"))
	require.Equal(t, http.StatusNotFound, w.send("", http.MethodGet, path+"A", "").Code)
	require.Empty(t, w.linkViews("trip"), "neither shows anything")

	require.Equal(t, http.StatusOK, open(http.MethodGet, "192.0.2.7:1"))
	require.Equal(t, http.StatusOK, open(http.MethodGet, "192.0.2.7:2"))
	views := w.linkViews("trip")
	require.Len(t, views, 1)
	require.Equal(t, []string{"w2-1", "ann", "link 192.0.2.7"}, []string{views[0].Wait, views[0].Who, views[0].From})
	for i := range 30 {
		require.Equal(t, http.StatusOK, open(http.MethodGet, fmt.Sprintf("198.51.100.%d:1", i)))
	}
	require.Len(t, w.linkViews("trip"), 4)
	require.Equal(t, before, w.dump(), "and nothing else was written")

	require.Equal(t, http.StatusOK, w.press(path, "approve", "").Code)
	require.Equal(t, http.StatusOK, open(http.MethodGet, "203.0.113.9:1"))
	require.Len(t, w.linkViews("trip"), 4, "what is decided is not asked any more")
	w.drive(key)
	_, check, err := w.VerifyAudit(t.Context(), key)
	require.NoError(t, err)
	require.True(t, check.Whole, check.Faults)
}

// TestLink_read_where_nothing_is_written: a process that only reads has a line in its log.
func TestLink_read_where_nothing_is_written(t *testing.T) {
	t.Parallel()
	w := newWorld(t, change{api: func(cfg *httpapi.Config) { cfg.ReadOnly = true }})
	w.start("trip", "deploy")
	path := w.link(ann, "trip", "w2-1", "")
	require.Equal(t, http.StatusOK, w.send("", http.MethodGet, path, "").Code)
	require.Empty(t, w.linkViews("trip"))
	require.Contains(t, w.log.String(), `msg="waits were read" session=acme/trip first=w2-1 count=1 who=ann from="link 192.0.2.1"`)
}

// TestLink_high_risk: a button alone approves nothing that the tool calls a high risk, nor does Enter in a
// field. The word on the page has to be typed.
func TestLink_high_risk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.start("trip", "deploy")
	for item, err := range w.store.Items(t.Context(), key, store.KindWait, "w2-1") {
		require.NoError(t, err)
		record := *item.Wait
		record.Wait.Preview = &session.Preview{Title: "Deploys <shop>", Risk: session.RiskHigh}
		record.Wait.ShownDigest = journal.ShownDigest(record.Wait)
		_, err = w.store.Update(t.Context(), key, store.WaitItem(record, item.Rev))
		require.NoError(t, err)
	}
	path := w.link(ann, "trip", "w2-1", "")
	page := w.send("", http.MethodGet, path, "").Body.String()
	require.Contains(t, page, "To approve, type <b>deploy</b> here")
	require.Contains(t, page, `name="word"`)
	require.Less(t, strings.Index(page, "<button disabled hidden>"), strings.Index(page, `name="reason"`), "the first button is the one that Enter presses")
	narrow := w.link(ann, "trip", "w2-1", `{"decisions":["deny"]}`)
	require.NotContains(t, w.send("", http.MethodGet, narrow, "").Body.String(), `name="word"`)

	press := func(fields url.Values) *httptest.ResponseRecorder {
		return w.send("", http.MethodPost, path, fields.Encode(), "Content-Type", mediaForm)
	}
	before := w.dump()
	for _, word := range [][]string{nil, {""}, {" "}, {"Deploy"}, {"deplo"}, {"deploy deploy"}, {"approve"}, {"yes"}, {"dеploy"}} { // the last has a letter that looks like one
		out := press(url.Values{"decision": {"approve"}, "reason": {"fine"}, "word": word})
		require.Equal(t, http.StatusBadRequest, out.Code, word)
		require.Contains(t, out.Body.String(), "Nothing was decided. The risk is high: to approve, type the word deploy", word)
		require.Contains(t, out.Body.String(), `value="approve"`, "the page is there again")
	}
	require.Equal(t, http.StatusBadRequest, press(url.Values{"decision": {"approve"}, "word": {"deploy", "deploy"}}).Code)
	require.Equal(t, before, w.dump())
	require.Equal(t, "link 192.0.2.1", w.linkViews("trip")[0].From)

	out := press(url.Values{"decision": {"approve"}, "reason": {"fine"}, "word": {" deploy\r\n"}})
	require.Equal(t, http.StatusOK, out.Code, out.Body.String())
	require.Contains(t, out.Body.String(), "<h1>Approved</h1>")
	late := press(url.Values{"decision": {"approve"}, "reason": {"other"}})
	require.Equal(t, http.StatusConflict, late.Code, "who came first is said before anything about a word")
	require.Contains(t, late.Body.String(), "<h1>Approved</h1>")

	w.start("low", "deploy")
	low := w.link(ann, "low", "w2-1", "")
	require.NotContains(t, w.send("", http.MethodGet, low, "").Body.String(), `name="word"`)
	require.Equal(t, http.StatusOK, w.press(low, "approve", "").Code)
	require.Equal(t, session.WaitAnswered, get[client.Waits](w, ann, "/sessions/low/waits").Items[0].State)
}
