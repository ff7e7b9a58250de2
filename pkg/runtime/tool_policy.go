package runtime

import (
	"maps"
	"slices"
)

// warnOfPolicy tells of the names in the policy of the program that no tool of its agents has: a name that
// is misspelt denies nothing.
func (c *Config) warnOfPolicy() {
	if c.ToolPolicy == nil {
		return
	}
	for _, tool := range slices.Sorted(maps.Keys(c.ToolPolicy.Tools)) {
		if !slices.ContainsFunc(c.Registry.Names(), func(agent string) bool { _, has := c.Registry.Tool(agent, tool); return has }) {
			c.Log.Warn("the policy names a tool that no agent here has", "tool", tool)
		}
	}
}
