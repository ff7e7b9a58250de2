package lambdafn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app/serverless"
)

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]int64{"128": 107_374_160, "10240": 8_589_934_560, "": 0, "much": 0, "-1": 0, "0": 0, "99999999999": 0} {
		env := map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": size}
		require.InDelta(t, want, heapLimit(func(name string) string { return env[name] }), 100, size)
		env["GOMEMLIMIT"] = "1GiB"
		require.Zero(t, heapLimit(func(name string) string { return env[name] }), "what the environment says counts")
	}
}

func TestConfigOf(t *testing.T) {
	t.Parallel()
	c := configOf(&serverless.App{Settings: serverless.Settings{
		TenantClaim: "org", IAMTenant: "ops", AllowUnauthenticated: true, MaxWait: 7 * time.Second, EventTemplate: "{}", EventTenant: "events",
	}})
	require.Equal(t, Config{
		TenantClaim: "org", IAMTenant: "ops", AllowUnauthenticated: true, MaxWait: 7 * time.Second, EventTemplate: "{}", EventTenant: "events",
	}, c)
}

func TestSweepAtOnce(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]int{"128": 2, "256": 4, "1024": 16, "10240": 32, "": 0} {
		require.Equal(t, want, sweepAtOnce(memorySize(func(string) string { return size })), size)
	}
}
