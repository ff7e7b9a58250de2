package list

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
)

// RunsCommand is the command runs, of one session: as of [Lists.ExportCommand], the command line says
// which words are one, how it is completed, and what is said where there is none.
func (l *Lists) RunsCommand(one cobra.PositionalArgs, complete cobra.CompletionFunc, none func(error, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   "runs session",
		Short: "List a session's stretches of work",
		Long: `List the stretches of work of a session: what began each, how it ended, the
entries it wrote, its steps, how long it was at work and how long the session
had waited before it, tokens, and what it cost where the model has a price.`,
		Args:              one,
		ValidArgsFunction: complete,
		RunE: l.do(func(ctx context.Context, args []string) error {
			return none(l.Runs(ctx, args[0]), args[0])
		}),
	}
}

// Runs prints the runs of a session.
func (l *Lists) Runs(ctx context.Context, id string) error {
	e, err := l.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	rows := []client.Run{}
	for run, err := range e.AllRuns(ctx, id) {
		if err != nil {
			return err
		}
		rows = append(rows, run)
	}
	if l.Form == screen.FormJSON {
		l.JSON(struct {
			Runs []client.Run `json:"runs"`
		}{rows})
		return nil
	}
	l.Table(runTable(rows))
	return nil
}

// tokenKind is a kind of token that has a column of its own where there are any.
type tokenKind struct {
	name string
	of   func(llm.Usage) int64
}

// tokenKinds: those of the cache are among IN, those of reasoning among OUT.
var tokenKinds = []tokenKind{
	{"IN", func(u llm.Usage) int64 { return u.Input }},
	{"CACHE READ", func(u llm.Usage) int64 { return u.CacheRead }},
	{"CACHE WRITE", func(u llm.Usage) int64 { return u.CacheWrite }},
	{"OUT", func(u llm.Usage) int64 { return u.Output }},
	{"REASONING", func(u llm.Usage) int64 { return u.Reasoning }},
}

func runTable(rows []client.Run) [][]string {
	priced := false
	for _, r := range rows {
		priced = priced || r.Used.CostMicros > 0
	}
	kinds := slices.DeleteFunc(slices.Clone(tokenKinds), func(kind tokenKind) bool {
		return !slices.ContainsFunc(rows, func(r client.Run) bool { return kind.of(r.Usage) > 0 })
	})
	table := [][]string{{"RUN", "TASK", "BEGAN BY", "ENDED", "ENTRIES", "STEPS", "AT WORK", "WAITED BEFORE", "TOKENS"}}
	for _, kind := range kinds {
		table[0] = append(table[0], kind.name)
	}
	if priced {
		table[0] = append(table[0], "COST")
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	span := func(millis int64) string { return screen.Span(time.Duration(millis) * time.Millisecond) }
	for _, r := range rows {
		// Until it has ended, what a run has used is not in its record.
		line := []string{number(r.ID), number(r.Task), screen.CleanLine(string(r.Trigger)), screen.CleanLine(string(r.Status)), number(r.FirstEntry) + "-", "", "", "", ""}
		if r.EndedAt != nil {
			line[4] += number(r.LastEntry)
			line[5], line[6], line[8] = number(r.Used.Steps), span(r.Used.ActiveMillis), number(r.Usage.Total())
		}
		if r.PreviousRun > 0 {
			line[7] = span(r.WaitedMillis)
		}
		for _, kind := range kinds {
			of := ""
			if r.EndedAt != nil {
				of = number(kind.of(r.Usage))
			}
			line = append(line, of)
		}
		if priced {
			line = append(line, fmt.Sprintf("%.6f", float64(r.Used.CostMicros)/1e6))
		}
		table = append(table, line)
	}
	return table
}
