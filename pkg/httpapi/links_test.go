package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// link makes a link of a caller's and returns its path.
func (w *world) link(token, id, wait, body string) string {
	w.Helper()
	made := answer[client.Link](w, http.StatusOK, w.send(token, http.MethodPost, "/sessions/"+id+"/waits/"+wait+"/links", body))
	path, ours := strings.CutPrefix(made.URL, linksConfig.URL)
	require.True(w, ours, made.URL)
	require.Less(w, len(path), 400)
	return path
}

// press is what a browser sends where somebody presses a button of a page.
func (w *world) press(path, decision, reason string) *httptest.ResponseRecorder {
	w.Helper()
	return w.send("", http.MethodPost, path, url.Values{"decision": {decision}, "reason": {reason}}.Encode(), "Content-Type", mediaForm)
}

// keys are those of the links of a world.
func keys(t testing.TB, text string) grant.Keys {
	t.Helper()
	k, err := grant.ParseKeys(text)
	require.NoError(t, err)
	return k
}

func (w *world) wait(id, wait string) session.Wait {
	w.Helper()
	linked, err := w.LinkedWait(w.Context(), session.Key{Tenant: "acme", ID: id}, wait, runtime.Caller{Who: ann})
	require.NoError(w, err)
	return linked.Record.Wait
}

// grantOf is the grant of a link that would be made for ann.
func (w *world) grantOf(id, wait string) grant.Grant {
	open := w.wait(id, wait)
	return grant.Grant{
		Tenant: "acme", Session: id, Wait: wait, Nonce: open.Nonce, Digest: open.Digest, Decisions: grant.Decisions(),
		Recipient: ann, Expires: w.now().Add(time.Hour),
	}
}

func (w *world) sign(g grant.Grant) string {
	w.Helper()
	text, err := keys(w, linksConfig.Keys).Sign(g)
	require.NoError(w, err)
	return "/a/" + text
}

func TestLink_decides_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.start("trip", "deploy")
	path := w.link(ann, "trip", "w2-1", "")
	page := w.send("", http.MethodGet, path, "")
	require.Equal(t, http.StatusOK, page.Code)
	for _, shown := range []string{"Approve deploy?", "desk", "trip", "Addressed to", "ann", "&lt;v1&gt; &amp; more", `value="approve"`, `value="deny"`, "none: it waits until somebody decides"} {
		require.Contains(t, page.Body.String(), shown)
	}

	out := w.press(path, "approve", "fine\r\nby me")
	require.Equal(t, http.StatusOK, out.Code, out.Body.String())
	require.Contains(t, out.Body.String(), "<h1>Approved</h1>")
	records, err := w.Waits(t.Context(), key)
	require.NoError(t, err)
	a := records[0].Answer
	require.True(t, *a.Approved)
	require.Equal(t, "ann", a.Who)
	require.Equal(t, "link 192.0.2.1", a.From)
	require.Equal(t, "fine\nby me", a.Reason)
	require.Equal(t, w.now(), a.When)
	w.drive(key)
	after := w.dump()

	// The same again is no second decision, another one is refused; all say who decided, how and when.
	again, other, look := w.press(path, "approve", "fine\nby me"), w.press(path, "deny", ""), w.send("", http.MethodGet, path, "")
	require.Equal(t, []int{http.StatusOK, http.StatusConflict, http.StatusOK}, []int{again.Code, other.Code, look.Code})
	for _, out := range []*httptest.ResponseRecorder{again, other, look} {
		for _, told := range []string{"<h1>Approved</h1>", "<dd>ann</dd>", "by a link, without signing in", "2 January 2026, 03:04:05 UTC", "fine\nby me"} {
			require.Contains(t, out.Body.String(), told)
		}
		require.NotContains(t, out.Body.String(), "<form")
	}
	require.Contains(t, other.Body.String(), "came too late and did not count")
	require.Equal(t, after, w.dump())
}

func TestLink_says_who_decided_elsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("trip", "deploy")
	path := w.link(ann, "trip", "w2-1", "")
	require.Equal(t, http.StatusOK, w.send(carol, http.MethodPost, "/sessions/trip/submit", `{"kind":"approval-response","waitId":"w2-1","approved":false,"reason":"not today"}`).Code)
	for _, out := range []*httptest.ResponseRecorder{w.send("", http.MethodGet, path, ""), w.press(path, "approve", "")} {
		for _, told := range []string{"<h1>Denied</h1>", "<dd>carol</dd>", "over the API", "not today"} {
			require.Contains(t, out.Body.String(), told)
		}
		require.NotContains(t, out.Body.String(), "192.0.2.1", "where carol is, is not told to who holds a link")
	}

	w.start("dropped", "deploy")
	path = w.link(ann, "dropped", "w2-1", "")
	require.Equal(t, http.StatusOK, w.send(carol, http.MethodPost, "/sessions/dropped/waits/w2-1/dismiss", `{"reason":"withdrawn"}`).Code)
	dropped := w.send("", http.MethodGet, path, "").Body.String()
	for _, told := range []string{"<h1>Dismissed</h1>", "<dt>Dismissed by</dt><dd>carol</dd>", "withdrawn"} {
		require.Contains(t, dropped, told)
	}
	require.NotContains(t, dropped, "Denied")

	w.start("hasty", "hurry")
	path = w.link(ann, "hasty", "w2-1", "")
	require.Contains(t, w.send("", http.MethodGet, path, "").Body.String(), "it is denied")
	w.passed.Add(int64(time.Hour) - 1)
	require.Equal(t, http.StatusOK, w.send("", http.MethodGet, path, "").Code)
	w.passed.Add(int64(time.Second))
	late := w.send("", http.MethodGet, path, "")
	require.Contains(t, late.Body.String(), "<h1>Too late</h1>")
	require.NotContains(t, late.Body.String(), "<form")
}

// TestLink_is_for_oneself: who makes a link for somebody else could decide as somebody else.
func TestLink_is_for_oneself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("trip", "deploy")
	w.start("meeting", "board")
	w.start("which", "pick")
	for name, c := range map[string]struct {
		token, target, body string
		status              int
		code                string
	}{
		"for somebody else":          {ann, "trip/waits/w2-1", `{"recipient":"carol"}`, 403, "forbidden"},
		"where others decide":        {ann, "meeting/waits/w2-1", "", 403, "not_allowed"},
		"of another tenant":          {eve, "trip/waits/w2-1", "", 404, "session_not_found"},
		"nobody":                     {"", "trip/waits/w2-1", "", 401, "unauthenticated"},
		"no such wait":               {ann, "trip/waits/w2-9", "", 404, "wait_not_found"},
		"no id of a wait":            {ann, "trip/waits/x", "", 404, "wait_not_found"},
		"a question":                 {ann, "which/waits/w3-1", "", 400, "wrong_kind"},
		"no decisions":               {ann, "trip/waits/w2-1", `{"decisions":[]}`, 400, "invalid_input"},
		"unknown decision":           {ann, "trip/waits/w2-1", `{"decisions":["approve","edit"]}`, 400, "invalid_input"},
		"a decision twice":           {ann, "trip/waits/w2-1", `{"decisions":["deny","deny"]}`, 400, "invalid_input"},
		"for ever":                   {ann, "trip/waits/w2-1", `{"expiresInMillis":9223372036854775807}`, 400, "invalid_field"},
		"no time at all":             {ann, "trip/waits/w2-1", `{"expiresInMillis":0}`, 400, "invalid_field"},
		"something there is no such": {ann, "trip/waits/w2-1", `{"assurance":"signed_in"}`, 400, "unknown_field"},
	} {
		out := w.send(c.token, http.MethodPost, "/sessions/"+c.target+"/links", c.body)
		require.Equal(t, c.status, out.Code, "%s: %s", name, out.Body.String())
		require.Equal(t, c.code, problem(t, out).Code, name)
	}
	require.NotEmpty(t, w.link(carol, "meeting", "w2-1", `{"recipient":"carol"}`))
	require.Equal(t, http.StatusOK, w.press(w.link(ann, "trip", "w2-1", ""), "deny", "").Code)
	require.Equal(t, "session_ended", problem(t, w.send(ann, http.MethodPost, "/sessions/trip/waits/w2-1/links", "")).Code)

	none := newWorld(t, change{api: func(cfg *httpapi.Config) { cfg.Links = nil }})
	none.start("trip", "deploy")
	require.Equal(t, "links_off", problem(t, none.send(ann, http.MethodPost, "/sessions/trip/waits/w2-1/links", "")).Code)
	require.Equal(t, http.StatusNotFound, none.send("", http.MethodGet, w.sign(none.grantOf("trip", "w2-1")), "").Code)
}

// forgery is a link that must not decide, made of a good one.
type forgery struct {
	name string
	// path of the link, and what happens to the session before it is used.
	path   func(w *world, g grant.Grant) string
	before func(w *world)
	status int
}

// forgeries are all but those that fuzzing finds.
func forgeries() []forgery {
	changed := func(alter func(w *world, g *grant.Grant)) func(*world, grant.Grant) string {
		return func(w *world, g grant.Grant) string { alter(w, &g); return w.sign(g) }
	}
	good := changed(func(*world, *grant.Grant) {})
	with := func(text string) func(*world, grant.Grant) string {
		return func(w *world, g grant.Grant) string {
			signed, err := keys(w, text).Sign(g)
			require.NoError(w, err)
			return "/a/" + signed
		}
	}
	edited := func(edit func(path string) string) func(*world, grant.Grant) string {
		return func(w *world, g grant.Grant) string { return edit(w.sign(g)) }
	}
	// spliced has the body of a token of wider decisions under the signature of a narrow one.
	spliced := func(w *world, g grant.Grant) string {
		g.Decisions = []grant.Decision{grant.Deny}
		narrow := w.sign(g)
		g.Decisions = grant.Decisions()
		wide := w.sign(g)
		return wide[:len(wide)-44] + narrow[len(narrow)-44:]
	}
	do := func(method, target, body string) func(*world) {
		return func(w *world) {
			w.Helper()
			out := w.send(ann, method, target, body)
			require.Less(w, out.Code, 300, out.Body.String())
			w.drive(session.Key{Tenant: "acme", ID: "trip"})
		}
	}
	other := strings.Replace(linksConfig.Keys, "MTEx", "MjIy", 1)
	return []forgery{
		{name: "another session", path: changed(func(_ *world, g *grant.Grant) { g.Session = "other" }), status: 404},
		{name: "a session there is not", path: changed(func(_ *world, g *grant.Grant) { g.Session = "none" }), status: 404},
		{name: "another tenant", path: changed(func(_ *world, g *grant.Grant) { g.Tenant = "rival" }), status: 404},
		{name: "another wait", path: changed(func(_ *world, g *grant.Grant) { g.Wait = "w2-2" }), status: 404},
		{name: "another nonce", path: changed(func(w *world, g *grant.Grant) { g.Nonce = w.wait("other", "w2-1").Nonce }), status: 404},
		{name: "another digest", path: changed(func(w *world, g *grant.Grant) { g.Digest = w.wait("big", "w2-1").Digest }), status: 404},
		{name: "who may not answer", path: func(w *world, _ grant.Grant) string { return w.sign(w.grantOf("meeting", "w2-1")) }, status: 403},
		{name: "another key under the same id", path: with(other), status: 404},
		{name: "another key's id", path: with(strings.Replace(linksConfig.Keys, "one:", "two:", 1)), status: 404},
		{name: "decisions widened", path: spliced, status: 404},
		{name: "expired", path: good, before: func(w *world) { w.passed.Add(int64(time.Hour)) }, status: 410},
		{name: "empty", path: edited(func(string) string { return "/a/" + grant.Prefix }), status: 404},
		{name: "without a signature", path: edited(func(p string) string { return p[:len(p)-43] }), status: 404},
		{name: "truncated", path: edited(func(p string) string { return p[:len(p)-1] }), status: 404},
		{name: "with more behind it", path: edited(func(p string) string { return p + "A" }), status: 404},
		{name: "in capitals", path: edited(func(p string) string { return "/a/" + strings.ToUpper(p[3:]) }), status: 404},
		{name: "endless", path: edited(func(p string) string { return p + strings.Repeat("A", 4000) }), status: 404},
		{name: "answered", path: good, before: do("POST", "/sessions/trip/submit", `{"kind":"approval-response","waitId":"w2-1","approved":false,"reason":"no"}`), status: 409},
		{name: "cancelled", path: good, before: do("POST", "/sessions/trip/cancel", ""), status: 409},
		{name: "deleted", path: good, before: func(w *world) {
			require.Equal(w, http.StatusOK, w.send(ann, "DELETE", "/sessions/trip", "").Code)
		}, status: 404},
		{name: "gone back", path: good, before: func(w *world) {
			at := get[client.Checkpoints](w, ann, "/sessions/trip/checkpoints").Items
			body := fmt.Sprintf(`{"fromCheckpoint":{"checkpointId":%q}}`, at[len(at)-1].ID)
			do("POST", "/sessions/trip/resume", body)(w)
			require.Equal(w, session.StatusSuspended, get[client.Session](w, ann, "/sessions/trip").Status, "it asks anew")
		}, status: 409},
		{name: "in a fork", path: func(w *world, g grant.Grant) string {
			require.Less(w, w.send(ann, "POST", "/sessions/trip/fork", `{"sessionId":"copy"}`).Code, 300)
			w.drive(session.Key{Tenant: "acme", ID: "copy"})
			pause := get[client.Session](w, ann, "/sessions/copy").Pause
			require.NotNil(w, pause)
			g.Session = "copy"
			return w.sign(g)
		}, status: 404},
	}
}

// TestLink_forgeries: a link that is not for exactly this wait, arguments, recipient and time decides
// nothing, whichever button is pressed.
func TestLink_forgeries(t *testing.T) {
	t.Parallel()
	for _, c := range forgeries() {
		for _, decision := range []string{"approve", "deny"} {
			t.Run(c.name+"/"+decision, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.start("trip", "deploy")
				w.start("other", "deploy")
				w.start("big", "big")
				w.start("meeting", "board")
				path := c.path(w, w.grantOf("trip", "w2-1"))
				if c.before != nil {
					c.before(w)
				}
				before := w.dump()
				out := w.press(path, decision, "")
				require.Equal(t, c.status, out.Code, out.Body.String())
				require.Equal(t, before, w.dump())
				require.NotContains(t, out.Body.String(), "&lt;v1&gt;", "the arguments are not told")
				require.NotContains(t, w.log.String(), grant.Prefix)
			})
		}
	}
}

// TestLink_forms: what is not a form of the page decides nothing.
func TestLink_forms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("trip", "deploy")
	path := w.link(ann, "trip", "w2-1", "")
	narrow := w.link(ann, "trip", "w2-1", `{"decisions":["deny"]}`)
	require.NotContains(t, w.send("", http.MethodGet, narrow, "").Body.String(), `value="approve"`)
	before := w.dump()
	for name, c := range map[string]struct {
		path, body, media string
		status            int
	}{
		"nothing":             {path, "", mediaForm, 400},
		"no decision":         {path, "reason=x", mediaForm, 400},
		"an empty decision":   {path, "decision=", mediaForm, 400},
		"an unknown decision": {path, "decision=yes", mediaForm, 400},
		"true":                {path, "decision=true", mediaForm, 400},
		"in capitals":         {path, "decision=Approve", mediaForm, 400},
		"two decisions":       {path, "decision=approve&decision=deny", mediaForm, 400},
		"the same twice":      {path, "decision=approve&decision=approve", mediaForm, 400},
		"another field":       {path, "decision=approve&editedInput={}", mediaForm, 400},
		"no escape":           {path, "decision=approve&reason=%zz", mediaForm, 400},
		"semicolons":          {path, "decision=approve;reason=x", mediaForm, 400},
		"no UTF-8":            {path, "decision=approve&reason=%ff", mediaForm, 400},
		"a long reason":       {path, "decision=approve&reason=" + strings.Repeat("x", 1025), mediaForm, 400},
		"a large form":        {path, "decision=approve&reason=" + strings.Repeat("x", 5000), mediaForm, 400},
		"JSON":                {path, `{"decision":"approve"}`, client.MediaJSON, 400},
		"a form in parts":     {path, "decision=approve", "multipart/form-data; boundary=x", 400},
		"text":                {path, "decision=approve", "text/plain", 400},
		"another charset":     {path, "decision=approve", mediaForm + "; charset=utf-16", 400},
		"in the query":        {path + "?decision=approve", "", mediaForm, 400},
		"not by this link":    {narrow, "decision=approve", mediaForm, 403},
	} {
		out := w.send("", http.MethodPost, c.path, c.body, "Content-Type", c.media)
		require.Equal(t, c.status, out.Code, "%s: %s", name, out.Body.String())
		require.Contains(t, out.Body.String(), "Nothing was decided", name)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		require.GreaterOrEqual(t, w.send("", method, path, "").Code, 400, method)
	}
	require.Equal(t, before, w.dump())
	require.Equal(t, http.StatusOK, w.press(narrow, "deny", "").Code)
}

// TestLink_shown_by_scanners: whatever fetches a link, as often as it likes, decides nothing, and the link
// is as good as before. Browsers that run scripts: scanners_test.go.
func TestLink_shown_by_scanners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("trip", "deploy")
	path := w.link(ann, "trip", "w2-1", "")
	before := w.dump()
	for range 100 {
		for _, header := range [][]string{
			nil,
			{"Purpose", "prefetch"},
			{"Sec-Purpose", "prefetch;prerender"},
			{"X-Moz", "prefetch"},
			{"User-Agent", "Slackbot-LinkExpanding 1.0"},
			{"Prefer", "wait=9"},
			{"X-HTTP-Method-Override", "POST"},
			{"Content-Type", mediaForm},
		} {
			for _, target := range []string{path, path + "?decision=approve", path + "?utm_source=mail&approved=true"} {
				seen := w.send("", http.MethodGet, target, "", header...)
				require.Equal(t, http.StatusOK, seen.Code)
				require.Contains(t, seen.Body.String(), "<form")
				head := w.send("", http.MethodHead, target, "", header...)
				require.Equal(t, http.StatusOK, head.Code)
				require.Zero(t, head.Body.Len())
			}
		}
	}
	require.Equal(t, before, w.dump())
	require.Equal(t, http.StatusOK, w.press(path, "approve", "").Code)
}

// TestLink_page_is_inert: nothing runs, frames, remembers or follows the page, and what others wrote is
// text in it.
func TestLink_page_is_inert(t *testing.T) {
	t.Parallel()
	hostile := `</pre><script>fetch('/')</script><img src=x onerror=alert(1)>` + "\u202e\u200b\x1b[2J"
	asks := agent.PlannerFunc(func(_ context.Context, v agent.View) (agent.Reply, error) {
		if v.Messages[len(v.Messages)-1].Role != llm.RoleUser {
			return agent.Reply{Text: "done"}, nil
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(map[string]string{"text": hostile})
		return agent.Reply{Text: hostile, Calls: []agent.Call{{Name: "deploy", Arguments: json.RawMessage(b.Bytes())}}}, err
	})
	bad, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "desk", Planner: asks, Tools: tools()}}})
	require.NoError(t, err)
	w := newWorld(t, change{runtime: func(cfg *runtime.Config) { cfg.Registry = bad }})
	w.start("trip", "deploy")
	path := w.link(ann, "trip", "w2-1", "")
	page := w.send("", http.MethodGet, path, "")
	text := page.Body.String()
	require.NotContains(t, text, "<script")
	require.NotContains(t, text, "<img")
	require.Contains(t, text, `&lt;script&gt;`)
	for _, hidden := range []string{"\u202e", "\u200b", "\x1b"} {
		require.NotContains(t, text, hidden)
	}
	require.Contains(t, text, `\u202e\u200b\u001b`)
	require.NotRegexp(t, `(?i)<[^>]*\son[a-z]+=`, text)
	require.NotContains(t, text, "http", "nothing of it is elsewhere")
	require.Equal(t, 1, strings.Count(text, "<form method=\"post\" autocomplete=\"off\">"))
	require.Contains(t, text, `<meta name="viewport" content="width=device-width, initial-scale=1">`)

	out := w.press(path, "deny", hostile)
	require.NotContains(t, out.Body.String(), "<script")
	require.Contains(t, out.Body.String(), `\u202e\u200b\x1b[2J`)
	for _, out := range []*httptest.ResponseRecorder{page, out, w.send("", http.MethodGet, path[:40], ""), w.send("", http.MethodHead, path, "")} {
		header := out.Header()
		require.Regexp(t, `^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$`, header.Get("Content-Security-Policy"))
		for name, value := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex, nofollow", "X-Frame-Options": "DENY",
		} {
			require.Equal(t, []string{value}, header.Values(name), name)
		}
		require.Empty(t, header.Values("Set-Cookie"))
	}
}

func TestLink_long_arguments_are_summed_up(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("big", "big")
	text := w.send("", http.MethodGet, w.link(ann, "big", "w2-1", ""), "").Body.String()
	require.Contains(t, text, "10011 bytes; text: 10002 bytes")
	before, whole, found := strings.Cut(text, "<details>")
	require.True(t, found)
	require.Less(t, len(before), 4000)
	require.Contains(t, whole, strings.Repeat("x", 10_000))
	require.Contains(t, whole, `value="approve"`)
}

// TestLink_shows_the_preview: what the tool shows of the call, and the agent's claim as its claim.
func TestLink_shows_the_preview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.start("trip", "deploy")
	for item, err := range w.store.Items(t.Context(), key, store.KindWait, "w2-1") {
		require.NoError(t, err)
		record := *item.Wait
		record.Wait.Claim = "I was <told> to"
		record.Wait.Preview = &session.Preview{
			Title: "Deploys <shop>", Risk: session.RiskHigh, Money: &session.Money{Amount: "12.50", Currency: "EUR"},
			Diff: &session.Diff{Name: "a.txt", Before: "old", After: "new\u202e", Cut: true}, Links: []session.Link{{Label: "more", URL: "https://x.example"}},
		}
		_, err = w.store.Update(t.Context(), key, store.WaitItem(record, item.Rev))
		require.NoError(t, err)
	}
	text := w.send("", http.MethodGet, w.link(ann, "trip", "w2-1", ""), "").Body.String()
	for _, shown := range []string{"Deploys &lt;shop&gt;", "<dd>high</dd>", "12.50 EUR", "a.txt\nold", `new\u202e`, "not the whole of it", "more https://x.example", "nobody has checked it", "I was &lt;told&gt; to"} {
		require.Contains(t, text, shown)
	}
	require.NotContains(t, text, "<a ")
}

// TestLink_that_is_not_enough: a wait that asks for more than a link proves is shown by one, and decided elsewhere.
func TestLink_that_is_not_enough(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]session.AnswerRule{"several people": {Need: 2}, "signed in": {Assurance: session.AssuranceSignedIn}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linkIsNotEnough(t, rule)
		})
	}
}

func linkIsNotEnough(t *testing.T, rule session.AnswerRule) {
	t.Helper()
	w := newWorld(t)
	key := w.start("trip", "deploy")
	for item, err := range w.store.Items(t.Context(), key, store.KindWait, "w2-1") {
		require.NoError(t, err)
		record := *item.Wait
		record.Wait.Rule, record.Wait.Needs = &rule, []string{session.NeedsAnswerRule}
		_, err = w.store.Update(t.Context(), key, store.WaitItem(record, item.Rev))
		require.NoError(t, err)
	}
	made := answer[client.Link](w, http.StatusOK, w.send(ann, http.MethodPost, "/sessions/trip/waits/w2-1/links", ""))
	require.False(t, made.Decides)
	path := strings.TrimPrefix(made.URL, linksConfig.URL)
	page := w.send("", http.MethodGet, path, "")
	require.Equal(t, http.StatusOK, page.Code)
	for _, shown := range []string{
		"&lt;v1&gt;", "This cannot be decided by a link", "adjourn submit --url &#39;https://adjourn.example&#39; --approve trip w2-1",
		"--reject trip w2-1", `<a href="https://sign.example/in" rel="noreferrer">`,
	} {
		require.Contains(t, page.Body.String(), shown)
	}
	require.NotContains(t, page.Body.String(), "<form")
	before := w.dump()
	for _, decision := range []string{"approve", "deny"} {
		require.Equal(t, http.StatusForbidden, w.press(path, decision, "").Code)
	}
	require.Equal(t, before, w.dump())
	// The check is the runtime's, with the write: no door can leave it out.
	_, err := w.Submit(t.Context(), runtime.SubmitParams{
		Key: key, Caller: runtime.Caller{Who: ann, From: "test", ByLink: true},
		Answer: session.Answer{Wait: "w2-1", Kind: session.AnswerApproval, Approved: new(true), ApprovalID: w.wait("trip", "w2-1").Nonce, Digest: w.wait("trip", "w2-1").Digest},
	})
	require.Equal(t, runtime.CodeSignInRequired, runtime.AsError(err).Code)
}

// TestLink_keys: the first key signs and all verify, so that one takes the place of another.
func TestLink_keys(t *testing.T) {
	t.Parallel()
	first, second := linksConfig.Keys, strings.NewReplacer("one:", "two:", "MTEx", "MjIy").Replace(linksConfig.Keys)
	with := func(text string) change {
		cfg := linksConfig
		cfg.Keys = text
		links, err := httpapi.NewLinks(cfg)
		require.NoError(t, err)
		return change{api: func(c *httpapi.Config) { c.Links = links }}
	}
	for text, good := range map[string]bool{first: true, second + "," + first: true, second: false} {
		w := newWorld(t, with(text))
		w.start("trip", "deploy")
		status := w.send("", http.MethodGet, w.sign(w.grantOf("trip", "w2-1")), "").Code
		require.Equal(t, good, status == http.StatusOK, text)
	}
	for _, cfg := range []httpapi.LinksConfig{
		{},
		{Keys: first},
		{URL: linksConfig.URL},
		{Keys: "one:c2hvcnQ=", URL: linksConfig.URL},
		{Keys: first, URL: "adjourn.example"},
		{Keys: first, URL: "https://a/?x"},
		{Keys: first, URL: linksConfig.URL, SignInURL: "javascript:alert(1)"},
	} {
		_, err := httpapi.NewLinks(cfg)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "c2hvcnQ")
	}
}

// TestOpenRoutes: a request without a caller is answered on these routes and on no others, whatever
// the configuration serves.
func TestOpenRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var open []string
	for _, route := range httpapi.Routes() {
		path := strings.NewReplacer("{id}", "trip", "{checkpoint}", someCheckpoint, "{wait}", "w2-1", "{token}", "adl_x").Replace(route.Path)
		if w.send("", route.Method, path, "").Code != http.StatusUnauthorized {
			open = append(open, route.Method+" "+route.Path)
		}
	}
	slices.Sort(open)
	require.Equal(t, []string{"GET /a/{token}", "GET /openapi.json", "POST /a/{token}"}, open, "what Slack has not signed is a caller nobody knows")
	for _, path := range []string{"/a/x/y", "/a", "/sessions/a/b", "/nothing"} {
		require.Equal(t, http.StatusUnauthorized, w.send("", http.MethodGet, path, "").Code, path)
	}
}

// TestLink_store_down: what cannot be read is not taken for gone.
func TestLink_store_down(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		d := &down{}
		w := newWorld(t, change{runtime: func(cfg *runtime.Config) { cfg.Store = d }})
		w.start("trip", "deploy")
		path := w.link(ann, "trip", "w2-1", "")
		d.mu.Lock()
		d.n, d.at = 0, at
		d.mu.Unlock()
		out := w.press(path, "approve", "")
		if d.n < at {
			require.Equal(t, http.StatusOK, out.Code)
			return
		}
		require.NotContains(t, out.Body.String(), "10.1.2.3")
		if out.Code != http.StatusOK {
			require.Equal(t, http.StatusServiceUnavailable, out.Code)
			require.Equal(t, "1", out.Header().Get("Retry-After"))
			require.Contains(t, w.log.String(), inside)
		}
		require.Equal(t, http.StatusOK, w.press(path, "approve", "").Code, "tried again, it counts once")
	}
}

// FuzzLink presses buttons with any token and any form: nothing is decided, and nothing of ours breaks.
func FuzzLink(f *testing.F) {
	w := newWorld(f, change{api: func(cfg *httpapi.Config) { cfg.Log = nil }})
	w.start("trip", "deploy")
	g := w.grantOf("trip", "w2-1")
	good := strings.TrimPrefix(w.sign(g), "/a/")
	for _, token := range []string{good, good[:len(good)-1], grant.Prefix, "x"} {
		for _, form := range []string{"decision=approve", "decision=deny&reason=x", "decision=", "reason=%41&decision=approve&x"} {
			f.Add(token, form)
		}
	}
	f.Fuzz(func(t *testing.T, token, form string) {
		path := "/a/" + url.PathEscape(token)
		if r, err := url.Parse(path); err != nil || r.Path == "/a/" {
			return
		}
		values, err := url.ParseQuery(form)
		real := token == good && err == nil && (values.Get("decision") == "approve" || values.Get("decision") == "deny")
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if real && method == http.MethodPost {
				continue // that would be a decision
			}
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form))
			r.Header.Set("Content-Type", mediaForm)
			out := httptest.NewRecorder()
			w.handler.ServeHTTP(out, r)
			require.Less(t, out.Code, 500)
			require.NotContains(t, out.Body.String(), "<script")
			if token != good {
				require.GreaterOrEqual(t, out.Code, 400)
			}
		}
		linked, err := w.LinkedWait(t.Context(), session.Key{Tenant: "acme", ID: "trip"}, "w2-1", runtime.Caller{Who: ann})
		require.NoError(t, err)
		require.Equal(t, session.WaitOpen, linked.Record.State)
	})
}
