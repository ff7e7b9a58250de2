package cli_test

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestAudit: who was asked, who answered and from where, as text, as JSON and as JSON lines; and the records
// are whole.
func TestAudit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
		b.run("resume", "s", "--approve", "w2-1").ends(0)
		out := b.run("audit", "s", "--verify").ends(0).stdout
		for _, text := range []string{"asked", "deploy c2-1", "answered", "approved", "taken", " entries, 1 wait, ", "Nothing contradicts anything."} {
			require.Contains(t, out, text)
		}
		require.NotContains(t, out, "FAULT")

		var doc struct {
			Audit []session.AuditLine
			Check *session.AuditCheck
		}
		require.NoError(t, json.Unmarshal([]byte(b.run("audit", "s", "-o", "json").ends(0).stdout), &doc))
		require.Nil(t, doc.Check)
		require.Equal(t, session.AuditAsked, doc.Audit[0].Kind)
		require.Equal(t, "w2-1", doc.Audit[0].Wait)

		lines := strings.Split(strings.TrimSpace(b.run("audit", "s", "--verify", "--output", "jsonl").ends(0).stdout), "\n")
		require.Len(t, lines, len(doc.Audit)+1)
		for i, line := range lines[:len(doc.Audit)] {
			var l session.AuditLine
			require.NoError(t, json.Unmarshal([]byte(line), &l))
			require.Equal(t, doc.Audit[i].Kind, l.Kind)
		}
		require.Contains(t, lines[len(doc.Audit)], `{"check":{"whole":true`)

		b.start("d", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
		b.run("delegate", "d", "w2-1", "ben", "--reason", "his order").ends(0)
		b.run("dismiss", "d", "w2-1", "--reason", "withdrawn").ends(0)
		out = b.run("audit", "d").ends(0).stdout
		for _, text := range []string{"delegated", "to ben: his order", "answered", "dismissed: withdrawn"} {
			require.Contains(t, out, text)
		}

		b.run("runs", "s", "--output", "jsonl").ends(2)
		b.run("audit", "nobody").ends(3)
		b.start("t", "[{say: ok}]", 0)
		require.Contains(t, b.run("audit", "t").ends(0).stdout, "has waited for nothing")
	})
}

// TestAudit_of_a_changed_file: each record that is not as it was written has a line, and the exit code is 1.
func TestAudit_of_a_changed_file(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	db, err := sql.Open("sqlite", b.data)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `UPDATE items SET payload=replace(payload, '"service":"a"', '"service":"b"') WHERE kind='wait'`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.Contains(t, b.run("audit", "s").ends(0).stdout, "asked")
	r := b.run("audit", "s", "--verify").ends(1)
	require.Contains(t, r.stdout, "FAULT: wait w2-1: it was changed after it was written")
	require.Contains(t, r.stdout, "FAULT: wait w2-1: it does not ask what entry 2 asked")
	require.Contains(t, b.run("audit", "s", "--verify", "-o", "json").ends(1).stdout, `"whole": false`)
	b.run("resume", "s", "--approve", "w2-1").ends(2) // what is shown is not what its digest says
	r = b.run("resume", "s", "--reject", "w2-1").ends(1)
	require.Contains(t, r.stderr, "is not as it was written")
	require.Contains(t, r.stderr, "adjourn audit s --verify")
	b.run("cancel", "s").ends(0)
}
