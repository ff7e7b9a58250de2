package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

// evil moves cursors, names windows, hides, turns around, and begins a line of its own.
const evil = "x\x1b[2J\x1b[1m\x1b]0;t\x07\r\b\x00\u009b31m\u202e\u2066\u200b\ufeff\u2028\u3164\U000e0041\nFAKE line\tz'$(touch /tmp/x)"

// filler fills every field of an answer with evil, but for what makes it one.
type filler struct {
	ids     bool // evil, too
	cursor  bool // there is a next page
	outcome session.Outcome
	kind    session.WaitKind
	entry   session.Kind
	asked   *sync.Map // the routes that commands asked
}

func (f filler) text(of reflect.Type, name string, kind reflect.Type) string {
	ours := strings.HasSuffix(of.PkgPath(), "/wire")
	switch {
	case kind == reflect.TypeFor[session.Outcome]():
		return string(f.outcome)
	case kind == reflect.TypeFor[session.WaitKind]():
		return string(f.kind)
	case kind == reflect.TypeFor[session.Kind]():
		return string(f.entry)
	case kind == reflect.TypeFor[session.WaitState]():
		return string(session.WaitOpen)
	case name == "Cursor" && !f.cursor:
		return ""
	case f.ids || !ours:
	case name == "ID" || name == "SessionID":
		return "s"
	case name == "CheckpointID":
		return session.Checkpoint{Session: "s", Seq: 2, Token: "t"}.String()
	case name == "WaitID":
		return "w2-1"
	case name == "ChildSessionID":
		return "s-1"
	}
	return evil
}

func (f filler) fill(v reflect.Value, of reflect.Type, name string, depth int) {
	if depth > 9 {
		return
	}
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		raw, _ := json.Marshal(map[string]string{evil: evil})
		v.SetBytes(raw)
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(9999, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text(of, name, v.Type()))
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(name != "More")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), of, name, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i), of, name, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, of, name, depth+1)
		f.fill(value, of, name, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				f.fill(v.Field(i), v.Type(), field.Name, depth+1)
			}
		}
	default:
	}
}

// answers are what routes answer with; those that no command asks have nil.
func answers() map[string]any {
	return map[string]any{
		"GET /sessions": &client.Sessions{}, "POST /sessions": &client.Started{}, "GET /waits": &client.Waits{}, "GET /sessions/{id}": &client.Session{},
		"GET /sessions/{id}/waits": &client.Waits{}, "GET /sessions/{id}/entries": &client.Entries{},
		"POST /sessions/{id}/answers": nil,
		"POST /sessions/{id}/submit":  &client.Submitted{}, "POST /sessions/{id}/resume": &client.Resumed{},
		"POST /sessions/{id}/messages": &client.Sent{}, "POST /sessions/{id}/interrupt": &client.Stopped{}, "POST /sessions/{id}/cancel": &client.Stopped{}, "POST /sessions/{id}/abort": &client.Stopped{},
		"GET /sessions/{id}/waits/{wait}": &client.WaitView{}, "POST /sessions/{id}/waits/{wait}/dismiss": &client.Acted{}, "POST /sessions/{id}/waits/{wait}/extend": &client.Acted{}, "POST /sessions/{id}/waits/{wait}/delegate": &client.Acted{},
		"POST /sessions/{id}/waits/{wait}/permission": &session.PermissionPreview{}, "GET /sessions/{id}/permissions": &client.Permissions{}, "POST /sessions/{id}/permissions/{permission}/revoke": &client.Revoked{},
		"DELETE /sessions/{id}":                  &client.Deleted{},
		"POST /sessions/{id}/waits/{wait}/links": &client.Link{}, "GET /a/{token}": nil, "POST /a/{token}": nil, "POST /slack/interactions": nil,
		"POST /halt": &client.Halted{}, "POST /go": &client.Lifted{}, "GET /halts": nil, "GET /notices": &client.Notices{},
		"PUT /away": &client.AwayChanged{}, "DELETE /away": &client.AwayChanged{}, "GET /away": &client.Away{},
		"GET /sessions/{id}/messages": nil, "GET /sessions/{id}/runs": &client.Runs{}, "GET /sessions/{id}/audit": &client.Audit{}, "GET /sessions/{id}/checkpoints": &client.Checkpoints{}, "GET /sessions/{id}/checkpoints/{checkpoint}": &client.CheckpointView{},
		"POST /sessions/{id}/retry": &client.Resumed{}, "POST /sessions/{id}/fork": &client.Forked{}, "GET /openapi.json": nil,
	}
}

func (f filler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	route := r.Method + " " + strings.Replace(r.URL.Path, "/sessions/s", "/sessions/{id}", 1)
	route = strings.NewReplacer(someCheckpoint, "{checkpoint}", "/waits/w2-1", "/waits/{wait}", "/permissions/w2-1", "/permissions/{permission}").Replace(route)
	f.asked.Store(route, true)
	answer, status, media := answers()[route], http.StatusOK, client.MediaJSON
	if answer == nil || f.entry == "" {
		answer, status, media = &client.Problem{}, http.StatusConflict, client.MediaProblem
	}
	f.fill(reflect.ValueOf(answer).Elem(), reflect.TypeOf(answer).Elem(), "", 0)
	switch a := answer.(type) {
	case *client.Problem:
		a.Status = status
	case *client.Entries:
		a.Items[0].Seq = 6
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// someCheckpoint is the form of a checkpoint's id.
const someCheckpoint = "czEuMi5xODN2QVNORlo0bXJ6ZThC"

var hostileCommands = [][]string{
	{"sessions"},
	{"inbox"},
	{"notices"},
	{"show", "s"},
	{"show", "s", "--full"},
	{"show", "s", "w2-1"},
	{"dismiss", "s", "w2-1", "--reason", "x"},
	{"extend", "s", "w2-1", "--by", "1h"},
	{"extend", "s", "w2-1", "--until", "2026-03-01T12:00:00Z"},
	{"delegate", "s", "w2-1", "ben"},
	{"permissions", "s"},
	{"permissions", "revoke", "s", "w2-1", "--reason", "x"},
	{"submit", "s", "w2-1", "--approve", "--standing", "session", "--preview"},
	{"away", "--to", "ben", "--until", "2026-03-01"},
	{"away", "--list"},
	{"away", "--end"},
	{"resume", "s"},
	{"resume", "s", "--approve", "w2-1"},
	{"resume", "s", "--approve-all"},
	{"resume", "s", "--reject-all"},
	{"resume", "s", "go on"},
	{"submit", "s", "w2-1", "--approve"},
	{"submit", "s", "w2-1", "--reply", "x"},
	{"submit", "s", "w9-9", "--approve"},
	{"submit", "s", "--call", "c2-1", "--result", "1"},
	{"resume", "s", "--from-checkpoint", "3"},
	{"resume", "s", "--from-checkpoint", someCheckpoint, "go on"},
	{"retry", "s"},
	{"fork", "s", "--session", "copy"},
	{"runs", "s"},
	{"audit", "s"},
	{"checkpoints", "s"},
	{"checkpoints", "s", someCheckpoint, "--compare", someCheckpoint},
	{"send", "s", "x"},
	{"send", "s", "x", "--start", "--task", "1"},
	{"interrupt", "s"},
	{"cancel", "s", "--task", "1"},
	{"abort", "s", "--reason", "x"},
	{"link", "s"},
	{"link", "s", "w2-1", "--expires", "1h"},
	{"delete", "s", "--yes"},
	{"delete", "s"},
	{"export", "s"},
	{"stop", "--agent", "a"},
	{"go"},
	{"run", "--agent", "a", "--session", "s", "hi"},
	{"run", "--wait", "0s", "hi"},
	{"__complete", "show", ""},
	{"__complete", "submit", "s", ""},
}

// ownCommands ask no server; each says why.
var ownCommands = map[string]string{
	"agents": "of this program", "work": "on a data file", "dev": "is the server", "demo": "has a data file of its own", "version": "of this program",
	"completion": "of cobra", "help": "of cobra",
}

// TestHostileServers_walk_everything: a new command, or a new route, is not left out.
func TestHostileServers_walk_everything(t *testing.T) {
	t.Parallel()
	walked := map[string]bool{}
	for _, words := range hostileCommands {
		walked[words[0]] = true
	}
	for _, name := range setup(t).commandNames() {
		require.NotEqual(t, walked[name], ownCommands[name] != "", "%s needs lines in hostileCommands, or its reason in ownCommands", name)
	}
	for _, route := range httpapi.Routes() {
		_, ok := answers()[route.Method+" "+route.Path]
		require.True(t, ok, "answers (hostile_test.go) has no %s: its wire type, or nil if no command asks it", route.Method+" "+route.Path)
	}
}

// harmless asserts that what was printed moves and hides nothing, and begins no line.
func harmless(t *testing.T, r result, lines bool) {
	t.Helper()
	for _, text := range []string{r.stdout, r.stderr} {
		for i, c := range text {
			bad := c != '\n' && unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point) && c != '\t'
			require.False(t, bad, "%q in %q", c, text[max(0, i-80):min(len(text), i+20)])
		}
	}
	for line := range strings.Lines(r.stderr + "\n" + r.stdout) {
		require.False(t, lines && strings.HasPrefix(strings.TrimSpace(line), "FAKE"), r.stdout+r.stderr)
	}
}

// TestHostileServers walks the commands over servers that answer every text with
// escapes, by every outcome, kind of wait and kind of entry.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	fillers := map[string]filler{
		"ids":       {ids: true, outcome: session.OutcomePaused, kind: session.WaitApproval, entry: session.KindSuspended},
		"cursors":   {cursor: true, outcome: session.OutcomePaused, kind: session.WaitApproval, entry: session.KindSuspended},
		"problems":  {},
		"problems2": {ids: true},
	}
	for _, outcome := range []session.Outcome{session.OutcomeCompleted, session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeInterrupted, session.OutcomeError, session.OutcomePaused, evil} {
		fillers["outcome "+string(outcome)] = filler{outcome: outcome, kind: session.WaitQuestion, entry: session.KindStarted}
	}
	for _, kind := range append(session.WaitKinds(), evil, "") {
		fillers["kind "+string(kind)] = filler{outcome: session.OutcomePaused, kind: kind, entry: session.KindResumed}
	}
	for _, kind := range []session.Kind{session.KindReplied, session.KindStepped, session.KindDelayed, session.KindCompleted, session.KindFailed, session.KindForked, evil} {
		fillers["entry "+string(kind)] = filler{outcome: session.OutcomeCompleted, kind: session.WaitInput, entry: kind}
	}
	for name, f := range fillers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.asked = &sync.Map{}
			server := httptest.NewServer(f)
			defer server.Close()
			b := setup(t)
			b.url = server.URL
			for _, words := range hostileCommands {
				r := b.run(words...)
				f.asked.Range(func(route, _ any) bool {
					require.NotNil(t, answers()[route.(string)], "%v asks %s, which answers() says no command asks: give it its wire type", words, route)
					return true
				})
				harmless(t, r, f.outcome != session.OutcomeCompleted || words[0] == "show") // the last message is the data
				require.NotContains(t, r.stdout+r.stderr, "panic")
				if words[0] == "__complete" {
					continue
				}
				r = b.run(append(words, "-o", "json")...)
				harmless(t, r, false)
				require.True(t, json.Valid([]byte(r.stdout)), "%v: %s\n%s", words, r.stdout, r.stderr)
				if f.ids && f.entry != "" && !slices.Contains([]string{"show", "runs", "audit", "stop", "go", "away"}, words[0]) { // as JSON it prints the entries as they are; the answers name no session
					require.Equal(t, 1, r.code, "%v: ids that are none: %s", words, r.stderr)
				}
			}
		})
	}
}

// TestHostileData has a data file that holds what models, tools and callers wrote.
func TestHostileData(t *testing.T) {
	t.Parallel()
	b := setup(t)
	script := func(v ...any) string { raw, _ := json.Marshal(v); return string(raw) }
	b.start("ask", script(map[string]any{"need": evil}), 10)
	b.start("approve", script(map[string]any{"call": "deploy", "with": map[string]string{"service": evil}}, map[string]any{"say": evil}), 10)
	b.start("done", script(map[string]any{"say": evil}), 0)
	for _, words := range [][]string{
		{"sessions"},
		{"inbox"},
		{"show", "ask"},
		{"show", "approve"},
		{"show", "approve", "--full"},
		{"show", "done", "--full"},
		{"resume", "ask"},
		{"resume", "approve"},
		{"submit", "approve", "w2-1", "--reject", "--reason", evil},
		{"show", "approve"},
		{"show", evil},
		{"resume", "ask", evil},
		{"submit", "ask", evil, "--reply", evil},
		{"sessions", "--cursor", evil},
	} {
		r := b.run(words...)
		harmless(t, r, words[0] != "submit" && words[0] != "resume")
		r = b.run(append(words, "-o", "json")...)
		harmless(t, r, false)
		require.True(t, json.Valid([]byte(r.stdout)), "%v: %s", words, r.stdout)
	}
}

// TestRestingAndRunning: a server that says both is not asked without a pause.
func TestRestingAndRunning(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", client.MediaJSON)
		switch {
		case strings.HasSuffix(r.URL.Path, "/entries"):
			_, _ = io.WriteString(w, `{"items":[],"after":0,"status":"running","resting":true}`)
		case strings.HasSuffix(r.URL.Path, "/resume"):
			_, _ = io.WriteString(w, `{"continuation":"queued"}`)
		default:
			_, _ = io.WriteString(w, `{"id":"s","agent":"a","status":"running","outcome":"running"}`)
		}
	}))
	t.Cleanup(server.Close)
	b := setup(t)
	b.url = server.URL
	b.run("resume", "s", "--wait", "300ms").ends(124)
	require.Less(t, asked.Load(), int64(15))
}

// TestShowOfAnEmptyJournal: what answers no entry is no session.
func TestShowOfAnEmptyJournal(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", client.MediaJSON)
		if strings.HasSuffix(r.URL.Path, "/entries") {
			_, _ = io.Copy(w, bytes.NewBufferString(`{"items":[],"after":0,"status":"suspended","resting":true}`))
			return
		}
		_, _ = io.Copy(w, bytes.NewBufferString(`{"id":"s","status":"suspended","outcome":"paused","pause":{"type":"question","pending":[{"waitId":"w2-1","kind":"question"}]}}`))
	}))
	t.Cleanup(server.Close)
	b := setup(t)
	b.url = server.URL
	for _, form := range []string{"text", "json"} {
		require.Contains(t, b.run("show", "s", "-o", form).ends(1).stderr, "its journal is empty")
	}
	require.Contains(t, b.run("resume", "s").stdout+b.run("resume", "s").stderr, "w2-1")
}
