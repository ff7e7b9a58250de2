package list

import (
	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/session"
)

// agentRow is one agent as agents prints it.
type agentRow struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Model       string `json:"model,omitempty"`
	// Trial says that a server offers it only when asked to.
	Trial bool      `json:"trial,omitempty"`
	Tools []toolRow `json:"tools"`
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

// Agents prints the agents of a registry, with the model that stands in for theirs, if any.
func (l *Lists) Agents(registry *agent.Registry, model string) {
	rows := []agentRow{}
	for _, name := range registry.Names() {
		a, _ := registry.Agent(name)
		rows = append(rows, newAgentRow(a, model))
	}
	if l.Form == screen.FormJSON {
		l.JSON(struct {
			Agents []agentRow `json:"agents"`
		}{rows})
		return
	}
	for i, row := range rows {
		if i > 0 {
			l.Say("")
		}
		l.Say("%s  %s", l.Bold(l.Stdout, row.Name), screen.CleanLine(row.Description))
		if row.Model != "" {
			l.Say("  model: %s", screen.CleanLine(row.Model))
		}
		if row.Trial {
			l.Say("  to try things out: a server offers it only with --lab, or %s=true", agent.TrialVariable)
		}
		table := [][]string{}
		for _, t := range row.Tools {
			table = append(table, []string{"  " + t.Name, report.ToolNotes(t.Effect, t.Approval, t.Client), screen.Short(t.Description, 90)})
		}
		l.Table(table)
	}
}

func newAgentRow(a agent.Agent, override string) agentRow {
	row := agentRow{Name: a.Name, Description: a.Description, Model: a.Model, Trial: a.Trial, Tools: []toolRow{}}
	if override != "" && a.Planner == nil {
		row.Model = override
	}
	for _, t := range a.Tools {
		row.Tools = append(row.Tools, toolRow{Name: t.Name(), Description: t.Description(), Effect: t.Effect(), Approval: t.HasApproval(), Client: t.Client()})
	}
	return row
}
