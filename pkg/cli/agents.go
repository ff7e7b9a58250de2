package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/session"
)

// agentRow is one agent as agents prints it.
type agentRow struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Model       string    `json:"model,omitempty"`
	Tools       []toolRow `json:"tools"`
}

type toolRow struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Effect      session.Effect `json:"effect"`
	// Approval says that some or all calls need a person's yes.
	Approval bool `json:"approval,omitempty"`
	// Client says that the tool runs on the caller's side.
	Client bool `json:"client,omitempty"`
}

func (c *cli) agentsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "agents",
		Short: "List the agents there are, with their tools",
		Args:  cobra.NoArgs,
		RunE: c.here("agents", func(context.Context, []string) error {
			return c.agents()
		}),
	}
}

func (c *cli) agents() error {
	registry, err := c.Registry()
	if err != nil {
		return err
	}
	settings, err := app.ReadSettings(c.Env)
	if err != nil {
		return err
	}
	rows := []agentRow{}
	for _, name := range agentNames(registry) {
		a, _ := registry.Agent(name)
		rows = append(rows, newAgentRow(a, settings.Model))
	}
	if c.output == outputJSON {
		c.json(struct {
			Agents []agentRow `json:"agents"`
		}{rows})
		return nil
	}
	for i, row := range rows {
		if i > 0 {
			c.say("")
		}
		c.say("%s  %s", c.bold(c.Stdout, row.Name), cleanLine(row.Description))
		if row.Model != "" {
			c.say("  model: %s", cleanLine(row.Model))
		}
		table := [][]string{}
		for _, t := range row.Tools {
			table = append(table, []string{"  " + t.Name, t.notes(), short(t.Description, 90)})
		}
		c.table(table)
	}
	return nil
}

func newAgentRow(a agent.Agent, override string) agentRow {
	row := agentRow{Name: a.Name, Description: a.Description, Model: a.Model, Tools: []toolRow{}}
	if override != "" && a.Planner == nil {
		row.Model = override
	}
	for _, t := range a.Tools {
		row.Tools = append(row.Tools, toolRow{Name: t.Name(), Description: t.Description(), Effect: t.Effect(), Approval: t.HasApproval(), Client: t.Client()})
	}
	return row
}

func (t toolRow) notes() string {
	if t.Client {
		return "runs on your side"
	}
	notes := strings.ReplaceAll(string(t.Effect), "_", " ")
	if t.Approval {
		notes += ", asks first"
	}
	return notes
}

func agentNames(registry *agent.Registry) []string { return registry.Names() }

// aboutTool is what the registry says of a tool, for a person who decides over it.
func (c *cli) aboutTool(e engine, agent, name string) string {
	t, ok := e.Tool(agent, name)
	switch {
	case !ok && c.remote():
		return "\nWhat " + cleanLine(name) + " does, only the server knows.\n"
	case !ok:
		return "\nThis program does not have the tool " + cleanLine(name) + " any more.\n"
	}
	row := toolRow{Effect: t.Effect(), Client: t.Client()}
	return "\n" + cleanLine(name) + " (" + row.notes() + ")\n" + quoteBlock(t.Description(), "  ", width(c.Stderr))
}
