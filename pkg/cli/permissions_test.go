package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestPermissions: an approval lets later calls run, which is shown before, listed, audited and revoked.
func TestPermissions(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		const refund = "{call: refund, with: {order: A, amount: "
		b.start("s", "["+refund+"150}}, "+refund+"200}}, "+refund+"160}}, "+refund+"900}}, {say: ok}]", 10)
		b.run("submit", "s", "w2-1", "--approve").ends(10)
		wait := waiting(b)
		for _, wrong := range [][]string{
			{"--standing", "session"},
			{"--approve", "--allow", "amount<=500"},
			{"--approve", "--preview"},
			{"--reject", "--standing", "session"},
			{"--approve", "--standing", "session", "--allow", "amount"},
			{"--approve", "--standing", "session", "--allow", "order=A"},
			{"--approve", "--standing", "session", "--edit", `{"order":"A","amount":200}`},
		} {
			b.run(append([]string{"submit", "s", wait}, wrong...)...).ends(2)
		}
		for _, wrong := range [][]string{{"--standing", "25h"}, {"--standing", "session", "--allow", "amount<=199"}, {"--standing", "session", "--allow", "price<=500"}} {
			b.run(append([]string{"submit", "s", wait, "--approve"}, wrong...)...).ends(2)
		}
		give := []string{"submit", "s", wait, "--approve", "--standing", "session", "--allow", "amount<=500", "--allow", "order^=A"}
		shown := b.run(append(give, "--preview")...).ends(0).stderr
		require.Contains(t, shown, "amount is a number from 0 to 500")
		require.Contains(t, shown, "It would have covered 1 of 1 earlier calls")
		require.Equal(t, wait, waiting(b), "nothing was decided")
		require.Contains(t, b.run("permissions", "s").ends(0).stderr, "no standing permission")
		b.run(give...).ends(10)
		require.NotEqual(t, wait, waiting(b), "160 ran, and 900 is asked")
		b.run(give...).ends(10)

		listed := b.run("permissions", "s").ends(0).stdout
		require.Contains(t, listed, wait+"  valid, until ")
		require.Contains(t, listed, `order begins with "A"`)
		var lines struct{ Audit []session.AuditLine }
		require.NoError(t, json.Unmarshal([]byte(b.run("audit", "s", "--verify", "-o", "json").ends(0).stdout), &lines))
		last := lines.Audit[len(lines.Audit)-1]
		require.Equal(t, session.AuditCovered, last.Kind)
		require.Equal(t, wait, last.Wait)
		require.NotEmpty(t, last.Who)
		require.Contains(t, b.run("audit", "s").ends(0).stdout, "covered")

		b.run("permissions").ends(2)
		b.run("permissions", "s", "revoke").ends(2)
		b.run("permissions", "s", "--reason", "x").ends(2)
		b.run("permissions", "none").ends(3)
		b.run("permissions", "revoke", "s", "w9-9").ends(3)
		require.Contains(t, b.run("permissions", "revoke", "s", wait, "--reason", "ask me").ends(0).stdout, ": ask me\n")
		require.Contains(t, b.run("permissions", "revoke", "s", wait).ends(0).stderr, "revoked before")
		var all struct{ Permissions []session.ShownPermission }
		require.NoError(t, json.Unmarshal([]byte(b.run("permissions", "s", "-o", "json").ends(0).stdout), &all))
		require.Len(t, all.Permissions, 1)
		require.Equal(t, session.PermissionRevoked, all.Permissions[0].State)
		require.Contains(t, b.run("audit", "s", "--verify").ends(0).stdout, "revoked")
	})
}

// waiting is the id of what session s waits for.
func waiting(b *bench) string {
	var s struct {
		Pause struct {
			Pending []struct {
				WaitID string `json:"wait_id"`
			} `json:"pending_tool_calls"`
		} `json:"pause_reason"`
	}
	require.NoError(b.t, json.Unmarshal([]byte(b.run("resume", "s", "-o", "json").ends(5).stdout), &s))
	require.Len(b.t, s.Pause.Pending, 1)
	return s.Pause.Pending[0].WaitID
}
