package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const deployScript = "[{call: deploy, with: {service: api}}, {say: ok}]"

// TestDevPolicy: the policy of a server holds what callers begin there, whatever they ask for, and goes with
// the session; one that cannot be read serves nobody.
func TestDevPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	program, policy, auto := b.install(), b.file("policy.yaml"), b.file("auto.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("tools: {deploy: never}\nnever: pause\n"), 0o600))
	require.NoError(t, os.WriteFile(auto, []byte("{tools: {deploy: auto}}"), 0o600))
	env := []string{asProgram + "=1", "ADJOURN_DATA=" + b.data, "ADJOURN_POLICY={tools: {deploy: prompt}}"}
	s := startDev(t, program, env, "--policy", policy)
	b.url, b.env["ADJOURN_TOKEN"] = s.URL, strings.TrimSpace(read(t, s.TokenFile))
	require.Contains(t, b.run("run", "--agent", "toy", "--session", "s", "--policy", auto, deployScript).ends(10).stdout, "never allows deploy")
	shown := b.run("show", "s").ends(0).stdout
	require.Contains(t, shown, `policy    {"tools":{"deploy":"never"},"never":"pause"}`)
	require.Contains(t, shown, "The policy of this task never allows deploy.")
	require.Contains(t, b.run("show", "s", "-o", "json").ends(0).stdout, `"programPolicy"`)
	require.Contains(t, b.run("inbox", "--no-input").ends(0).stdout, "never allows deploy")
	require.Equal(t, "ok\n", b.run("resume", "s", "leave it").ends(0).stdout)
	require.Contains(t, b.run("audit", "s", "--verify").ends(0).stdout, "denied")
	b.run("run", "--agent", "toy", "--session", "left", "[{need: a?}]").ends(10)
	require.Equal(t, 0, s.interrupt())

	// On the data file beside it the setting counts.
	b.url, b.env["ADJOURN_POLICY"] = "", auto
	require.Equal(t, "ok\n", b.run("run", "--agent", "toy", "--session", "d", "--policy", policy, "--pause-on-approval=false", deployScript).ends(0).stdout)
	b.env["ADJOURN_POLICY"] = "{tools: {deploy: never}}"
	require.Equal(t, "ok\n", b.run("run", "--agent", "toy", "--session", "e", "--policy", auto, deployScript).ends(0).stdout)
	require.Contains(t, b.run("show", "e").ends(0).stdout, "not allowed in this task")
	for _, wrong := range []string{b.file("none"), "{tools: {deploy: ask}}", "{}"} {
		b.env["ADJOURN_POLICY"] = wrong
		require.Contains(t, b.run("run", "--agent", "toy", "--session", "f", deployScript).ends(2).stderr, "ADJOURN_POLICY", wrong)
	}
	b.env["ADJOURN_POLICY"] = ""
	require.Contains(t, b.run("dev", "--policy", b.file("none")).ends(2).stderr, "--policy: ")
}

// TestPolicy_on_a_terminal: whoever is asked for a message because of a policy is told why before they type.
func TestPolicy_on_a_terminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		policy := b.file("policy.yaml")
		require.NoError(t, os.WriteFile(policy, []byte("{tools: {deploy: never}, never: pause}"), 0o600))
		p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "--policy", policy, deployScript)
		p.Sees("The policy of this task never allows deploy.").Sees("Your answer").Types("leave it\n")
		require.Equal(t, 0, p.Leaves(), p.All())
	})
}
