package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestDelete: a session that waits is deleted, and is gone for every command.
func TestDelete(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a", "b"), 10)
		refused := b.run("delete", "s").ends(2)
		require.Contains(t, refused.stderr, "--yes says that session s is to be deleted for good")
		require.Contains(t, refused.stderr, "toy, suspended, task 1")
		require.Contains(t, refused.stderr, "delete s --yes")
		b.run("show", "s").ends(0)

		require.Equal(t, "Session s is deleted. Its status was suspended.\n", b.run("delete", "s", "--yes").ends(0).stdout)
		for _, words := range [][]string{
			{"show", "s"}, {"export", "s"}, {"delete", "s", "--yes"}, {"delete", "s"}, {"cancel", "s"}, {"resume", "s"}, {"submit", "s", "w2-1", "--approve"},
		} {
			require.Contains(t, b.run(words...).ends(3).stderr, "there is no such session", words)
		}
		require.Contains(t, b.run("run", "--agent", "toy", "--session", "s", "[{say: hi}]").ends(5).stderr, "its id is never used again")
		require.NotContains(t, b.run("inbox").ends(0).stdout, "w2-1")
		require.NotContains(t, b.run("sessions").ends(0).stdout, "suspended")
		require.NoFileExists(t, log)

		b.start("t", "[{say: hi}]", 0)
		var deleted client.Deleted
		require.NoError(t, json.Unmarshal([]byte(b.run("delete", "t", "--yes", "-o", "json").ends(0).stdout), &deleted))
		require.Equal(t, client.Deleted{SessionID: "t", Status: session.StatusCompleted, Task: 1}, deleted)
		b.run("delete", "nobody", "--yes").ends(3)
	})
}

// A session that somebody works on is deleted too.
func TestDelete_what_runs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "[{call: hang}, {say: done}]").ends(0)
	r := b.run("delete", "s", "--yes").ends(0)
	require.Equal(t, "Session s is deleted. Its status was running.\n", r.stdout)
	require.Contains(t, r.stderr, "writes nothing more into it")
	b.run("show", "s").ends(3)
}

// The pause file does not tell of what was deleted.
func TestDelete_pause_file(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", deploys(b.file("log"), "a"), 10)
	require.FileExists(t, filepath.Join(filepath.Dir(b.data), "pause.json"))
	b.run("delete", "s", "--yes").ends(0)
	require.NoFileExists(t, filepath.Join(filepath.Dir(b.data), "pause.json"))
}

// On a terminal the session is shown, and only a yes deletes it.
func TestDelete_on_a_terminal(t *testing.T) {
	t.Parallel()
	for typed, deleted := range map[string]bool{"y\n": true, "\n": false, "n\n": false, "what\nyes\n": true, "\x04": false, "\x03": false} {
		t.Run(fmt.Sprintf("%q", typed), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.start("s", deploys(b.file("log"), "a"), 10)
			p := b.sit(nil, "delete", "s")
			p.Sees("Session s").Sees("toy, suspended, task 1").Sees("it waits for an approval")
			for line := range strings.Lines(typed) {
				p.Sees("Delete it for good? [y]es, [N]o: ").Types(line)
			}
			code := p.Leaves()
			if deleted {
				require.Equal(t, 0, code, p.All())
				b.run("show", "s").ends(3)
				return
			}
			require.Contains(t, p.All(), "Nothing was deleted.")
			b.run("show", "s").ends(0)
		})
	}
}

// TestExport: all entries are written as JSON lines, in order, over more than one page.
func TestExport(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		script := "["
		for range 80 {
			script += "{call: add_note, with: {text: '<a> & b'}}, "
		}
		b.start("s", script+"{say: done}]", 0)
		b.start("s", script+"{say: done}]", 0)
		shown := b.run("show", "s", "-o", "json").ends(0).stdout
		text := b.run("export", "s").ends(0).stdout
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		require.Greater(t, len(lines), 160, "more than a page")
		require.JSONEq(t, shown, "["+strings.Join(lines, ",")+"]")

		file := b.file("s.jsonl")
		r := b.run("export", "s", "--file", file).ends(0)
		require.Empty(t, r.stdout)
		require.Contains(t, r.stderr, fmt.Sprintf("%d entries in", len(lines)))
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text, string(raw))
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Contains(t, b.run("export", "s", "--file", file).ends(2).stderr, "is there already")
		b.run("export", "nobody", "--file", b.file("none")).ends(3)
		require.NoFileExists(t, b.file("none"))
		b.run("export", "s", "--file", b.file("no/folder")).ends(1)
	})
}

// What cannot be written whole is an error, and no file.
func TestExport_not_whole(t *testing.T) {
	t.Parallel()
	entry := func(seq int) string { return fmt.Sprintf(`{"v":1,"seq":%d,"kind":"stepped","status":"running"}`, seq) }
	for name, second := range map[string]string{
		"an entry is missing":  `{"items": [` + entry(3) + `], "after": 3, "status": "running"}`,
		"a value is left out":  `{"items": [` + entry(2) + `], "after": 2, "status": "running", "leftOut": [{"at": "/items/0/output", "bytes": 9, "digest": "d"}]}`,
		"the server breaks":    `{`,
		"the session is gone":  "",
		"the pages do not end": `{"items": [], "after": 1, "more": true, "status": "running"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", client.MediaJSON)
				switch {
				case r.URL.Query().Get("after") == "0":
					_, _ = fmt.Fprintf(w, `{"items": [%s], "after": 1, "more": true, "status": "running"}`, entry(1))
				case second == "":
					w.Header().Set("Content-Type", client.MediaProblem)
					w.WriteHeader(http.StatusNotFound)
					_, _ = w.Write([]byte(`{"status": 404, "code": "session_not_found", "detail": "gone"}`))
				default:
					_, _ = w.Write([]byte(second))
				}
			}))
			t.Cleanup(server.Close)
			b.url = server.URL
			file := b.file("s.jsonl")
			r := b.run("export", "s", "--file", file)
			require.NotZero(t, r.code, r.stderr)
			require.NoFileExists(t, file)
			require.NotZero(t, b.run("export", "s").code)
		})
	}
}
