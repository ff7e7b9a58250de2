package cli

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
)

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArgs("this command takes none"),
		RunE: c.do(func(context.Context, []string) error {
			if c.Form == screen.FormJSON {
				c.JSON(map[string]string{"version": version()})
				return nil
			}
			c.Say("%s %s", c.Name, version())
			return nil
		}),
	}
}

// version is what the build knows of itself: the module's version or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
