//go:build aws && linux

package functions_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
)

// A bundle that nobody asked to offer the lab refuses to start it, by every door.
func TestLab_is_not_offered(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"unset": "", "false": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := deploy(t, settings{env: map[string]string{"ADJOURN_LAB": value}})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for _, agent := range []string{"lab", "janitor"} {
				_, err := w.client(t, "default").Start(ctx, client.StartParams{Request: client.StartRequest{Agent: agent, Input: client.Text("[{say: hello}]")}})
				var refused *client.Error
				require.ErrorAs(t, err, &refused)
				require.Equal(t, http.StatusForbidden, refused.Status)
				require.Equal(t, "agent_not_offered", refused.Problem.Code)
				require.Contains(t, refused.Problem.Detail, "Lab=true")
				_, err = w.functions["event"].Invoke(ctx, []byte(`{"agent":"`+agent+`","input":"[{say: hello}]"}`))
				require.ErrorContains(t, err, "agent_not_offered")
			}
			require.Zero(t, w.invocations("step"))
		})
	}
}
