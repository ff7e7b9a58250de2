package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// What the page says is given is what template.yaml gives.
func TestTemplate(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../template.yaml")
	require.NoError(t, err)
	var all struct {
		Parameters map[string]map[string]any       `yaml:"Parameters"`
		Resources  map[string]map[string]yaml.Node `yaml:"Resources"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &all))
	for name, want := range map[string]int{
		"MaxConcurrency": maxConcurrency, "ThrottleRate": throttleRate, "StepMemory": stepMemory, "ApiMemory": apiMemory,
	} {
		require.EqualValues(t, want, all.Parameters[name]["Default"], name)
	}
	require.EqualValues(t, mappingConcurrency, all.Parameters["MaxConcurrency"]["MaxValue"])
	properties := all.Resources["Sweep"]["Properties"]
	var sweep struct {
		Timeout int `yaml:"Timeout"`
	}
	require.NoError(t, properties.Decode(&sweep))
	require.Equal(t, sweepTimeout, time.Duration(sweep.Timeout)*time.Second)
}
