package tool_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

// TestStanding: a permission for later calls is part of the definition, and only a tool takes it about whose calls one
// person here decides.
func TestStanding(t *testing.T) {
	t.Parallel()
	type in struct{ Amount int }
	define := func(spec tool.Spec[in]) tool.Tool {
		spec.Name = "pay"
		return tool.Define(spec, func(context.Context, *tool.Call, in) (string, error) { return "", nil })
	}
	without, day, hour := define(tool.Spec[in]{}), define(tool.Spec[in]{Standing: &tool.Standing{}}), define(tool.Spec[in]{Standing: &tool.Standing{MaxAge: time.Hour}})
	require.NoError(t, day.Err())
	require.Zero(t, without.Standing())
	require.Equal(t, 24*time.Hour, day.Standing())
	require.Equal(t, time.Hour, hour.Standing())
	require.NotEqual(t, without.Digest(), day.Digest())
	require.NotEqual(t, day.Digest(), hour.Digest())
	for says, spec := range map[string]tool.Spec[in]{
		"several people": {Standing: &tool.Standing{}, Approve: tool.Always[in], Need: 2},
		"(Need, Noes)":   {Standing: &tool.Standing{}, Approve: tool.Always[in], Noes: 2},
		"25h0m0s":        {Standing: &tool.Standing{MaxAge: 25 * time.Hour}},
		"-1ns":           {Standing: &tool.Standing{MaxAge: -1}},
		"MaxAge is 5ns":  {Standing: &tool.Standing{MaxAge: 5}},
	} {
		require.ErrorContains(t, define(spec).Err(), says)
	}
	require.ErrorContains(t, tool.DefineClient(tool.Spec[in]{Name: "pay", Standing: &tool.Standing{}}).Err(), "Standing")
}
