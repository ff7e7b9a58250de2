package tool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

// TestPolicyMayAllow_is_part_of_the_definition: an approval that waits is asked anew where the tool is let be
// allowed by a policy, or is no more; tools that do not say it keep the digest that they had.
func TestPolicyMayAllow_is_part_of_the_definition(t *testing.T) {
	t.Parallel()
	spec := refundSpec()
	spec.Approve = tool.Always[refundIn]
	asks := tool.Define(spec, refund)
	spec.PolicyMayAllow = true
	may := tool.Define(spec, refund)
	require.NoError(t, may.Err())
	require.True(t, may.PolicyMayAllow())
	require.False(t, asks.PolicyMayAllow())
	require.False(t, tool.Tool{}.PolicyMayAllow())
	require.NotEqual(t, asks.Digest(), may.Digest())
}
