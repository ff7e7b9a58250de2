package lambdafn_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestLinks: the function submit makes a link for a caller and takes its decision from somebody whom no
// authorizer has verified, query shows its page, and the log of neither has its token.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wake, steps := w.start("[{call: deploy, with: {service: shop}}, {say: done}]"), step(t, w)
	work := func() {
		for sent := w.queue.takeSent(); len(sent) > 0; sent = w.queue.takeSent() {
			for _, next := range sent {
				deliver(t, steps, wakeMessage(t, "m", next))
			}
		}
	}
	deliver(t, steps, wakeMessage(t, "m", wake))
	work()
	key := wake.Key()

	ann := map[string]string{"tenant": session.DefaultTenant, "sub": "ann"}
	path := "/sessions/" + key.ID + "/waits/w2-1/links"
	none, err := lambdafn.NewSubmit(w.cfg)
	require.NoError(t, err)
	require.Equal(t, "links_off", problemOf(t, ask(t, none, jwt("POST", path, ann))).Code)

	w.cfg.Links = httpapi.LinksConfig{Keys: grant.FormatKey("one", []byte(strings.Repeat("k", 32))), URL: "https://api.example.com"}
	submit, err := lambdafn.NewSubmit(w.cfg)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, ask(t, submit, request("POST", path)).StatusCode, "who makes a link is verified")
	got := ask(t, submit, jwt("POST", path, ann))
	require.Equal(t, http.StatusOK, got.StatusCode, got.Body)
	var link client.Link
	require.NoError(t, json.Unmarshal([]byte(got.Body), &link))
	token, ours := strings.CutPrefix(link.URL, "https://api.example.com")
	require.True(t, ours, link.URL)

	page := ask(t, query(t, w), request("GET", token))
	require.Equal(t, http.StatusOK, page.StatusCode, page.Body)
	require.Equal(t, "text/html; charset=utf-8", page.Headers["Content-Type"])
	require.Contains(t, page.Body, "Approve deploy?")
	require.Nil(t, w.stands(key).Open[0].Answer)

	e := request("POST", token)
	e.Headers["content-type"], e.Body = "application/x-www-form-urlencoded", "decision=approve&reason="
	require.Equal(t, http.StatusForbidden, ask(t, query(t, w), e).StatusCode, "the function that reads decides nothing")
	decided := ask(t, submit, e)
	require.Equal(t, http.StatusOK, decided.StatusCode, decided.Body)
	require.Contains(t, decided.Body, "<h1>Approved</h1>")
	work()
	require.Equal(t, "done", w.stands(key).Text)
	records, err := w.cfg.Runtime.Waits(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []string{"ann", "link 192.0.2.7"}, []string{records[0].Answer.Who, records[0].Answer.From})

	staged := request("GET", "/prod"+token)
	staged.RequestContext.Stage = "prod"
	_ = ask(t, query(t, w), staged)
	w.logs("/a/…")
	require.NotContains(t, w.log.String(), grant.Prefix)

	w.cfg.Links.Keys = "one:short"
	_, err = lambdafn.NewQuery(w.cfg)
	require.ErrorIs(t, err, grant.ErrKeys)
}
