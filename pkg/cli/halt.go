package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
)

// haltCommand is stop, the kill switch.
func (c *cli) haltCommand() *cobra.Command {
	var asked client.HaltRequest
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Let no step begin, of an agent or of everything",
		Long: `Stop the steps of all sessions, or of those of one agent or tenant: two seconds
later none begins, in any process. A step that has begun is brought to its end.
Nothing is lost: what is started and answered meanwhile is stored, interrupt,
cancel and abort work as ever, and go lets all of it go on.

With a server it stops what belongs to your tenant. To stop one session, use
interrupt or cancel.`,
		Args: noArgs("it stops steps of all sessions; to stop one: interrupt SESSION"),
		RunE: c.do(func(ctx context.Context, _ []string) error { return c.halt(ctx, asked) }),
	}
	cmd.Flags().StringVar(&asked.Agent, "agent", "", "stop the steps of this `agent` only")
	cmd.Flags().StringVar(&asked.Tenant, "tenant", "", "stop the steps of this `tenant` only")
	cmd.Flags().StringVar(&asked.Reason, "reason", "", "`text` that whoever is held up is shown")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.completeAgents)
	return cmd
}

// goCommand is go, which ends what stop began.
func (c *cli) goCommand() *cobra.Command {
	var asked client.GoRequest
	cmd := &cobra.Command{
		Use:   "go",
		Short: "Let go on what stop has stopped",
		Long: `Let the steps go on that stop has stopped, with the same --agent and --tenant.
On a data file the sessions go on two seconds later, where somebody works on
them; with a server, within about a minute.`,
		Args: noArgs("it lets all sessions go on that stop has stopped; to go on with one: resume SESSION"),
		RunE: c.do(func(ctx context.Context, _ []string) error { return c.letGo(ctx, asked) }),
	}
	cmd.Flags().StringVar(&asked.Agent, "agent", "", "what was stopped with this `agent`")
	cmd.Flags().StringVar(&asked.Tenant, "tenant", "", "what was stopped with this `tenant`")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.completeAgents)
	return cmd
}

func (c *cli) halt(ctx context.Context, asked client.HaltRequest) error {
	e, err := c.Open(ctx, true)
	if err != nil {
		return err
	}
	defer c.close(e)
	halted, err := e.Halt(ctx, asked)
	if err != nil {
		return err
	}
	if c.Form == screen.FormJSON {
		c.JSON(halted)
		return nil
	}
	if halted.Already {
		c.Say("%s", c.Halted(halted.Halt))
		c.Talk("Nothing was done: that was so before.")
		return nil
	}
	c.Say("Stopped: %s. No step begins, two seconds from now.", screen.CleanLine(halted.Halt.Scope()))
	c.Say("To let it go on: %s", c.GoCommand(halted.Halt))
	return nil
}

func (c *cli) letGo(ctx context.Context, asked client.GoRequest) error {
	e, err := c.Open(ctx, true)
	if err != nil {
		return err
	}
	defer c.close(e)
	lifted, err := e.Go(ctx, asked)
	if err != nil {
		return err
	}
	if c.Form == screen.FormJSON {
		c.JSON(lifted)
		return nil
	}
	for _, halt := range lifted.Lifted {
		c.Say("Goes on: %s.", screen.CleanLine(halt.Scope()))
	}
	if len(lifted.Lifted) == 0 {
		c.Say("Nothing was stopped that this lets go on.")
	}
	for _, halt := range lifted.Left {
		c.Talk("%s", c.Halted(halt))
	}
	return nil
}
