package work

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/list"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

const (
	// idle is how long work waits for a message of a session that has something to do, before it
	// looks after what crashes and deadlines have left.
	idle = 300 * time.Millisecond
	// sweepEvery is how often deadlines and lost messages are looked after.
	sweepEvery = 15 * time.Second
)

// Work returns the command work.
func (c *Commands) Work() *cobra.Command {
	var watch bool
	var concurrency int
	var stay Stay
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Work on every session that has something to do",
		Long: `Work on every session that has something to do, until all of them rest: after a
crash, for deadlines that have passed, or for sessions others started with
--wait 0s. With --watch it keeps going, as a worker; any number may run at once.`,
		Args: c.cfg.NoArgs("it works on every session; to go on with one: resume SESSION"),
		RunE: c.cfg.Here("work", func(ctx context.Context, _ []string) error {
			return c.workAll(ctx, watch, concurrency, &stay)
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "keep going until interrupted")
	cmd.Flags().IntVar(&concurrency, "concurrency", 8, "work on at most this `number` of sessions at once, 1 to 64")
	stay.Register(cmd.Flags())
	cmd.Flags().Lookup("wait").Usage = "stay for at most this `duration`, then exit 124 if there is work left\n(default: until all of them rest)"
	return cmd
}

// moved is what work did: where each session stands that it worked on.
type moved struct {
	mu       sync.Mutex
	sessions map[string]session.Status
	order    []string // the one that moved last is the last
}

func (m *moved) see(k session.Key, p runtime.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.sessions[k.ID]; known {
		m.order = slices.DeleteFunc(m.order, func(id string) bool { return id == k.ID })
	}
	m.sessions[k.ID], m.order = p.Status, append(m.order, k.ID)
}

func (c *Commands) workAll(ctx context.Context, watch bool, concurrency int, stay *Stay) error {
	if err := stay.Bound(c.Place); err != nil {
		return err
	}
	if concurrency < 1 || concurrency > 64 {
		return exit.Usagef("--concurrency %d: use 1 to 64", concurrency)
	}
	m := &moved{sessions: map[string]session.Status{}}
	c.Watch = m.see
	a, err := c.OpenData(ctx, !watch)
	if errors.Is(err, embedded.ErrNoData) {
		return c.worked(m, false, nil)
	}
	if err != nil {
		return err
	}
	defer report.Close(c.Screen, c.Place, a)
	work, cancel := stay.Within(ctx)
	defer cancel()
	end := SayStopping(ctx, c.Screen, c.Place)
	sending, sent := context.WithCancel(work)
	var notices sync.WaitGroup
	notices.Go(func() { a.SendNotices(sending) })
	if watch {
		c.Talk("Working on %s until interrupted.", a.Data)
		err = a.Runtime.Work(work, a.Queue(), runtime.WorkParams{Concurrency: concurrency, SweepEvery: sweepEvery})
	} else {
		err = c.workOff(work, a, concurrency)
	}
	sent()
	notices.Wait()
	end()
	if err := UnlessOver(work, err); err != nil {
		return err
	}
	left, others, err := c.left(context.WithoutCancel(ctx), a)
	if err != nil {
		return err
	}
	e, err := c.Over(a)
	if err != nil {
		return err
	}
	if err := c.recordMoved(context.WithoutCancel(ctx), e, m); err != nil {
		return err
	}
	stored, err := list.StoredIn(context.WithoutCancel(ctx), e)
	if err != nil {
		return err
	}
	if err := c.worked(m, left, stored); err != nil {
		return err
	}
	for _, head := range others {
		c.Complain("session %s is left to the program that has its agent %q: it is not in this one", head.Key.ID, head.Agent)
	}
	switch {
	case ctx.Err() != nil:
		return exit.Said(exit.Interrupted)
	case left:
		return exit.Said(exit.Waited)
	case len(others) > 0:
		return exit.Said(exit.NotFound)
	}
	return nil
}

// recordMoved keeps the pause file true of the sessions that were worked on: it holds
// the last one that paused, as it stands now.
func (c *Commands) recordMoved(ctx context.Context, e *place.Connection, m *moved) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.order {
		if m.sessions[id].Ended() {
			report.Ended(c.Screen, c.Place, id)
			continue
		}
		s, err := e.Session(ctx, id, 0)
		if exit.CodeOf(err) == client.CodeSessionNotFound { // it was deleted meanwhile
			report.Ended(c.Screen, c.Place, id)
			continue
		}
		if err != nil {
			return err
		}
		report.Record(c.Screen, c.Place, report.NewView(c.Place, s))
	}
	return nil
}

// left reports whether any session has something to do here: it is running, or
// all its answers are in and it has not been resumed. The others that have are
// those whose agent this program has not.
func (c *Commands) left(ctx context.Context, a *embedded.App) (left bool, others []journal.Head, err error) {
	see := func(head journal.Head) {
		if slices.Contains(a.Registry.Names(), head.Agent) {
			left = true
		} else {
			others = append(others, head)
		}
	}
	for cursor := ""; ; {
		running, err := a.Runtime.Sessions(ctx, runtime.SessionsParams{Tenant: session.DefaultTenant, Status: session.StatusRunning, Limit: 100, Cursor: cursor})
		if err != nil {
			return false, nil, err
		}
		for _, head := range running.Heads {
			see(head)
		}
		if cursor = running.Cursor; cursor == "" || left {
			break
		}
	}
	unresumed, err := a.Runtime.Unresumed(ctx)
	if err != nil {
		return false, nil, err
	}
	for _, k := range unresumed {
		head, err := a.Runtime.Head(ctx, k)
		if err != nil {
			return false, nil, err
		}
		see(head)
	}
	return left, others, nil
}

// workOff works until no session has anything to do. A session that has, but
// nothing in the queue, is put off until later, or its worker has died; the
// sweep looks after the latter.
func (c *Commands) workOff(ctx context.Context, a *embedded.App, concurrency int) error {
	// The sweep gives whoever gave the last answer a moment to send for what
	// follows. This command is what one types after a crash, so it sends at once;
	// should both do it, one of them comes to nothing.
	unresumed, err := a.Runtime.Unresumed(ctx)
	if err != nil {
		return err
	}
	for _, k := range unresumed {
		_, err := a.Runtime.Resume(ctx, runtime.ResumeParams{Key: k, Mode: runtime.ResumeContinue, Caller: runtime.Caller{Who: c.cfg.Who, From: "cli"}})
		if err != nil && exit.Class(err) != runtime.ClassConflict {
			return err
		}
	}
	left := true
	done := func(ctx context.Context) (bool, error) {
		var err error
		left, _, err = c.left(ctx, a)
		return err == nil && !left, err
	}
	for {
		if _, err := a.Runtime.Sweep(ctx); err != nil {
			return err
		}
		if err := a.Runtime.HandleDeadLetters(ctx); err != nil {
			return err
		}
		if err := a.Runtime.Work(ctx, a.Queue(), runtime.WorkParams{Concurrency: concurrency, Idle: idle, Done: done}); err != nil || !left {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// worked prints what was done, and which sessions' answers are only stored.
func (c *Commands) worked(m *moved, left bool, stored []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := slices.Sorted(maps.Keys(m.sessions))
	if c.Form == screen.FormJSON {
		type row struct {
			Session string         `json:"session"`
			Status  session.Status `json:"status"`
		}
		rows := []row{}
		for _, id := range ids {
			rows = append(rows, row{Session: id, Status: m.sessions[id]})
		}
		c.JSON(struct {
			Worked  []row    `json:"worked"`
			Running bool     `json:"running"`
			Stored  []string `json:"stored,omitempty"`
		}{rows, left, stored})
		return nil
	}
	for _, id := range ids {
		c.Say("%s  %s", id, m.sessions[id])
	}
	switch {
	case left:
		c.Talk("There is work left. Go on: %s", c.Command("work"))
	case len(ids) == 0 && c.NoData():
		c.Talk("There was nothing to do: there is no data file %s.", c.DataPath())
	case len(ids) == 0:
		c.Talk("There was nothing to do in %s.", c.DataPath())
	default:
		c.Talk("Nothing is running any more. What waits for people: %s", c.Command("inbox"))
	}
	switch n := len(stored); {
	case n == 1:
		c.Talk("Answers to session %s are only stored: it goes on when somebody says so: %s", screen.CleanLine(stored[0]), c.Command(place.Target("resume", stored[0])...))
	case n > 1:
		c.Talk("Answers to %s are only stored: each goes on when somebody says so: %s", screen.Count(int64(n), "session"), c.Command("inbox"))
	}
	return nil
}
