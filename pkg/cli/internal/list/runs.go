package list

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
)

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

func runTable(rows []client.Run) [][]string {
	priced := false
	for _, r := range rows {
		priced = priced || r.Used.CostMicros > 0
	}
	table := [][]string{{"RUN", "TASK", "BEGAN BY", "ENDED", "ENTRIES", "STEPS", "AT WORK", "WAITED BEFORE", "TOKENS"}}
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
		if priced {
			line = append(line, fmt.Sprintf("%.6f", float64(r.Used.CostMicros)/1e6))
		}
		table = append(table, line)
	}
	return table
}
