package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/answers"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// completion must never keep a shell waiting.
const completionTime = time.Second

// completeAgents completes the names of agents.
func (c *cli) completeAgents(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if c.Remote() {
		return nil, cobra.ShellCompDirectiveNoFileComp // only the server knows its agents
	}
	registry, err := c.Registry()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	for _, name := range registry.Names() {
		if a, ok := registry.Agent(name); ok && strings.HasPrefix(name, prefix) {
			found = append(found, cobra.CompletionWithDesc(name, screen.CleanLine(a.Description)))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// openForCompletion opens what a completion reads, for as long as a shell waits for
// one. The engine is nil where nothing can be opened; otherwise done closes it.
func (c *cli) openForCompletion(cmd *cobra.Command) (ctx context.Context, e *place.Connection, done func()) {
	ctx = cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	c.Quiet = true
	e, err := c.OpenReading(ctx)
	if err != nil {
		cancel()
		return ctx, nil, nil
	}
	return ctx, e, func() {
		c.close(e)
		cancel()
	}
}

// completeSessions completes ids of the sessions that moved last.
func (c *cli) completeSessions(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, e, done := c.openForCompletion(cmd)
	if e == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer done()
	page, err := e.Sessions(ctx, client.SessionsParams{Page: client.Page{Limit: 100}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	for _, h := range page.Items {
		if strings.HasPrefix(h.ID, prefix) && place.Plain(h.ID) {
			found = append(found, cobra.CompletionWithDesc(h.ID, screen.CleanLine(string(h.Status)+", "+h.Agent)))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeFirst completes the first argument only.
func (c *cli) completeFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, prefix)
	}
}

// completeSessionAndWait completes the session, then what waits there.
func (c *cli) completeSessionAndWait(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return c.completeSessions(cmd, args, prefix)
	case 1:
		return c.completeWaits(cmd, args[0], prefix, func(client.Wait) bool { return true })
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeApprovals completes ids of the approvals the session waits for.
func (c *cli) completeApprovals(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	id := ""
	if f := cmd.Flag("checkpoint"); f != nil {
		if checkpoint, err := session.ParseCheckpoint(f.Value.String()); err == nil {
			id = checkpoint.Session
		}
	}
	if len(args) > 0 {
		id = args[0]
	}
	return c.completeWaits(cmd, id, prefix, func(w client.Wait) bool { return w.Kind == session.WaitApproval })
}

func (c *cli) completeWaits(cmd *cobra.Command, id, prefix string, fits func(client.Wait) bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, e, done := c.openForCompletion(cmd)
	if e == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer done()
	waits, err := answers.WaitsOf(ctx, e, id)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	for _, w := range report.Pending(waits.Session) {
		if strings.HasPrefix(w.WaitID, prefix) && place.Plain(w.WaitID) && fits(w) {
			found = append(found, cobra.CompletionWithDesc(w.WaitID, report.Headline(w)))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
