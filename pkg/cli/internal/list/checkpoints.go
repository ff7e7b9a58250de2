package list

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// CheckpointOf returns the id of a checkpoint that is given by it, or by the number of its entry.
func (l *Lists) CheckpointOf(ctx context.Context, e *place.Connection, id, given string) (string, error) {
	list := l.Command(place.Target("checkpoints", id)...)
	if given == report.WordEntry {
		return "", exit.Usagef("%s", report.Replace(given, "the number of an entry there (see: "+list+")"))
	}
	seq, err := strconv.ParseInt(given, 10, 64)
	if err != nil {
		if _, err := session.ParseCheckpoint(given); err != nil {
			return "", exit.Usagef("%q is neither the number of an entry nor the id of a checkpoint (see: %s)", given, list)
		}
		return given, nil
	}
	for checkpoint, err := range e.AllCheckpoints(ctx, id) {
		if err != nil {
			return "", err
		}
		if checkpoint.Seq == seq {
			return checkpoint.ID, nil
		}
	}
	return "", exit.Refusef(client.CodeCheckpointNotFound, id, "entry %d is no checkpoint of it (see: %s)", seq, list)
}

// Checkpoints prints the checkpoints of a session, or one of them if it is named.
func (l *Lists) Checkpoints(ctx context.Context, id string, named []string, compare string, full bool) error {
	e, err := l.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	if len(named) > 0 {
		return l.checkpoint(ctx, e, id, named[0], compare, full)
	}
	all := []client.Checkpoint{}
	for checkpoint, err := range e.AllCheckpoints(ctx, id) {
		if err != nil {
			return err
		}
		all = append(all, checkpoint)
	}
	if l.Form == screen.FormJSON {
		l.JSON(struct {
			Checkpoints []client.Checkpoint `json:"checkpoints"`
		}{all})
		return nil
	}
	rows := [][]string{{"ENTRY", "WHAT", "STATUS", "TASK", "STEP", "WHEN", "CHECKPOINT"}}
	for _, c := range all {
		rows = append(rows, []string{
			strconv.FormatInt(c.Seq, 10), screen.CleanLine(string(c.Kind)), screen.CleanLine(string(c.Status)),
			strconv.FormatInt(c.Task, 10), strconv.FormatInt(c.Step, 10), l.ago(c.At), screen.CleanLine(c.ID),
		})
	}
	l.Table(rows)
	return nil
}

// maxMessages is how many messages of a checkpoint are taken in: a server could name more and more.
const maxMessages = 1_000_000

// whole is a checkpoint with all of its messages.
func (l *Lists) whole(ctx context.Context, e *place.Connection, p client.CheckpointParams) (client.CheckpointView, error) {
	view, err := e.Checkpoint(ctx, p)
	for cursor := view.Cursor; err == nil && cursor != ""; {
		p.Cursor = cursor
		var page client.CheckpointView
		page, err = e.Checkpoint(ctx, p)
		view.Messages = append(view.Messages, page.Messages...)
		if err == nil && (page.Cursor == cursor || len(view.Messages) > maxMessages) {
			err = fmt.Errorf("%w: the messages of a checkpoint have no end", client.ErrNotAdjourn)
		}
		cursor = page.Cursor
	}
	view.Cursor = ""
	return view, err
}

func (l *Lists) checkpoint(ctx context.Context, e *place.Connection, id, named, compare string, full bool) error {
	p := client.CheckpointParams{SessionID: id}
	var err error
	if p.CheckpointID, err = l.CheckpointOf(ctx, e, id, named); err != nil {
		return err
	}
	if compare != "" {
		if p.Compare, err = l.CheckpointOf(ctx, e, id, compare); err != nil {
			return err
		}
	}
	view, err := l.whole(ctx, e, p)
	if err != nil {
		return err
	}
	if l.Form == screen.FormJSON {
		l.JSON(view)
		return nil
	}
	l.Say("%s", l.Bold(l.Stdout, screen.Sprintf("Session %s at entry %d: %s, task %d, step %d, %s", id, view.Seq, view.Status, view.Task, view.Step, l.ago(view.At))))
	if c := view.Compared; c != nil {
		end := "."
		if c.Added > 0 {
			end = ":"
		}
		l.Say("Both begin with the same %s; the other one has %d more, this one %d%s", screen.Count(int64(c.Common), "message"), c.Removed, c.Added, end)
	}
	l.Write(l.Stdout, report.Messages(l.Screen, view.Messages, full))
	l.sayState(view)
	if len(view.Waits) > 0 {
		l.Say("\nOpen then:")
		l.Write(l.Stdout, report.Lines(view.Waits)+"\n")
	}
	if n := view.Effects.Count; n > 0 {
		l.Say("\nDone since then (%s with effects), which going back does not undo:", screen.Count(int64(n), "call"))
		l.Write(l.Stdout, report.Effects(view.Effects, l.now(), screen.Width(l.Stdout)))
	}
	l.Say("\nTo go back there:\n  %s", l.Command(place.Target("resume", id, "--from-checkpoint", strconv.FormatInt(view.Seq, 10))...))
	return nil
}

// sayState prints the state at a checkpoint, or what is different from the other one.
func (l *Lists) sayState(view client.CheckpointView) {
	if view.Compared != nil {
		for _, change := range view.Compared.State {
			l.Say("state  %s %s %s", screen.CleanLine(change.Op), screen.CleanLine(change.Path), screen.Compact(change.Value, 300))
		}
		return
	}
	for _, key := range slices.Sorted(maps.Keys(view.State)) {
		l.Say("state  %s: %s", screen.CleanLine(key), screen.Compact(view.State[key], 300))
	}
}
