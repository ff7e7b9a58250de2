package pkg_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
)

// Nobody deploys agents by accident that do for every caller what their tools can do.
func TestTemplateOffersNoLabByDefault(t *testing.T) {
	t.Parallel()
	lab := asMap(t, readBundle(t).section(t, "Parameters")["Lab"])
	require.Equal(t, "false", lab["Default"])
	require.Equal(t, []any{"true", "false"}, lab["AllowedValues"])
	for _, file := range []string{"../samconfig.toml", "../localstack/samconfig.toml"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "Lab", "%s is what everybody deploys", file)
	}
	raw, err := os.ReadFile("../localstack/deploy-local")
	require.NoError(t, err)
	require.Contains(t, string(raw), `"Lab": "true"`, "make smoke tells its story with the lab")

	registry, err := agents.Registry()
	require.NoError(t, err)
	for _, name := range registry.Names() {
		if name != "lab" && name != "janitor" {
			continue // yours
		}
		a, _ := registry.Agent(name)
		require.True(t, a.Trial, name)
	}
}
