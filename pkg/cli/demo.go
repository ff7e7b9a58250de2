package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/cli/internal/demo"
)

func (c *cli) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Tell the story in two minutes: run, pause, approve, finish",
		Long: `Make a sample folder with duplicate files and let the agent janitor clean it up.
Every command runs as a process of its own and nothing needs to be typed. The
folder stays, so that you can go on trying.`,
		Args: noArgs("this command takes none"),
		RunE: c.here("demo", func(ctx context.Context, _ []string) error {
			if err := c.checkAgent(demo.Agent); err != nil {
				return err
			}
			return demo.Run(ctx, c.Screen, c.Place, dir)
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "make the sample in this `folder`, which must be empty or not exist (default: a temporary one)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}
