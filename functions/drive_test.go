//go:build aws && linux

package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// drive is one session as its client sees it.
type drive struct {
	*trial
	key    session.Key
	script *labtest.Script
	dir    string
	client *client.Client
	// nobody answers what is asked.
	nobody bool
	// impatient is a client that does not repeat a start of which nothing was heard.
	impatient bool
	// rng decides how the client answers; nil is always by submit.
	rng *rand.Rand

	started client.Started
	// ambiguous are the waits with an answer on whose way something broke, so that
	// nobody knows whether it counted.
	ambiguous map[string]bool
	// told are the answers the client was told are taken.
	told map[string]session.Answer
	// unknown are the calls whose outcome nobody knows, at the end.
	unknown int
}

// drive starts the session and answers what it asks until it has ended.
func (d *drive) drive() {
	deadline := time.Now().Add(patience)
	ctx, stop := context.WithDeadline(background, deadline)
	defer stop()
	d.start(ctx)
	for {
		d.rests(ctx)
		s, err := d.client.Session(ctx, d.key.ID, 0)
		switch {
		case d.broke(ctx, "query", err):
			continue
		case s.Status == session.StatusCompleted:
			return
		case s.Status == session.StatusSuspended || s.Status == session.StatusRunning:
		default:
			d.Errorf("%s is %s: %+v", d.key, s.Status, s.Failure)
			d.FailNow()
		}
		if s.Pause != nil && !d.nobody {
			d.answer(ctx, s)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// broke reports whether a request got no true answer; a refusal is a fault.
func (d *drive) broke(ctx context.Context, what string, err error) bool {
	if err == nil {
		return false
	}
	require.NoError(d, ctx.Err(), "%s: %s takes too long: %v", d.key, what, err)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status < 500 && refused.Status != 429 {
		d.Errorf("%s: %s: refused with %d %s: %v", d.key, what, refused.Status, refused.Problem.Code, err)
		d.FailNow()
	}
	d.Note("%s: %s: %v", d.key, what, err)
	time.Sleep(20 * time.Millisecond)
	return true
}

func (d *drive) start(ctx context.Context) {
	for {
		started, err := d.client.Start(ctx, client.StartParams{
			Request:        client.StartRequest{SessionID: d.key.ID, Agent: "lab", Input: client.Text(d.script.Text())},
			IdempotencyKey: "start-" + d.key.ID,
		})
		if d.broke(ctx, "start", err) {
			if d.impatient && d.head() != nil {
				return // it is not asked again: the sweep has to find it
			}
			continue
		}
		d.started = started
		require.Equal(d, d.key.ID, started.SessionID)
		require.EqualValues(d, 1, started.Entry.Seq)
		return
	}
}

// rests waits until the session does not run. It looks into the table, which
// wakes nobody.
func (d *drive) rests(ctx context.Context) { d.await(ctx, session.StatusRunning) }

// ends waits until the session has ended.
func (d *drive) ends(ctx context.Context) {
	d.await(ctx, session.StatusRunning, session.StatusSuspended)
}

func (d *drive) await(ctx context.Context, not ...session.Status) {
	for {
		head := d.head()
		if head != nil && !slices.Contains(not, head.Status) {
			return
		}
		require.NoError(d, ctx.Err(), "%s does not come to rest: %+v", d.key, head)
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *drive) head() *journal.Head {
	for item, err := range d.store.Items(background, d.key, store.KindHead, "") {
		require.NoError(d, err)
		return item.Head
	}
	return nil
}

// answer gives one answer to what a paused session asks, in one of the ways there are.
func (d *drive) answer(ctx context.Context, s client.Session) {
	pending := s.Pause.Pending
	w := pending[d.chance(len(pending))]
	if w.Kind == session.WaitQuestion {
		d.submit(ctx, w, client.SubmitRequest{WaitID: w.WaitID, Kind: session.AnswerReply, Selected: []string{"red"}})
		return
	}
	require.Equal(d, session.WaitApproval, w.Kind)
	approved := !d.denies(w)
	// A decision is about all approvals of the pause: where some are decided it would
	// contradict them.
	if d.chance(2) == 0 || s.Pause.Decided > 0 {
		d.submit(ctx, w, client.SubmitRequest{
			WaitID: w.WaitID, Kind: session.AnswerApproval, ToolCallID: w.CallID, ApprovalID: w.ApprovalID, Approved: &approved,
		})
		return
	}
	// All at once.
	decisions := &client.Decisions{}
	var decided []client.Wait
	for _, w := range pending {
		if w.Kind != session.WaitApproval {
			continue
		}
		decided = append(decided, w)
		if d.denies(w) {
			decisions.Reject = append(decisions.Reject, w.WaitID)
		} else {
			decisions.Approve = append(decisions.Approve, w.WaitID)
		}
	}
	_, err := d.client.Resume(ctx, client.ResumeParams{SessionID: d.key.ID, Request: client.ResumeRequest{
		Mode: client.ResumeWithDecisions, CheckpointID: s.CheckpointID, Decisions: decisions,
	}})
	d.answered(ctx, "resume", decided, err, func(w client.Wait) session.Answer {
		yes := !d.denies(w)
		return session.Answer{Wait: w.WaitID, Kind: session.AnswerApproval, Approved: &yes}
	})
}

func (d *drive) chance(n int) int {
	if d.rng == nil {
		return 0
	}
	return d.rng.IntN(n)
}

// denies reports whether the script wants an approval refused.
func (d *drive) denies(w client.Wait) bool { return d.script.EffectOf(d, w.Arguments).Denied }

func (d *drive) submit(ctx context.Context, w client.Wait, answer client.SubmitRequest) {
	got, err := d.client.Submit(ctx, client.SubmitParams{SessionID: d.key.ID, Answer: answer})
	d.answered(ctx, "submit", []client.Wait{w}, err, func(client.Wait) session.Answer { return got.Answer })
}

// answered remembers what the client was told of its answers. A refusal is true
// only where an earlier answer, of which nothing was heard, had counted.
func (d *drive) answered(ctx context.Context, what string, waits []client.Wait, err error, told func(client.Wait) session.Answer) {
	if err == nil {
		for _, w := range waits {
			d.told[w.WaitID] = told(w)
			d.Note("%s: %s: %s is answered", d.key, what, w.WaitID)
		}
		return
	}
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == 409 {
		known := false
		for _, w := range waits {
			known = known || d.ambiguous[w.WaitID]
		}
		require.True(d, known, "%s: %s refused with %s: %v", d.key, what, refused.Problem.Code, err)
		d.Note("%s: %s: %s", d.key, what, refused.Problem.Code)
		return
	}
	for _, w := range waits {
		d.ambiguous[w.WaitID] = true
	}
	d.broke(ctx, what, err)
}

// journal is the session's journal in short.
func (d *drive) journal() string {
	var b strings.Builder
	const shown = 60
	for e, err := range d.store.Entries(background, d.key, 0) {
		if err != nil {
			fmt.Fprintf(&b, "journal: %v\n", err)
			break
		}
		if e.Seq == shown {
			b.WriteString("…\n")
		}
		if e.Seq >= shown && e.Seq < d.head().StatusSeq-shown/3 {
			continue
		}
		fmt.Fprintf(&b, "%3d %s %-10s run %d step %d keepsLease %v attempt %+v", e.Seq, e.At.Format("15:04:05.000"), e.Kind, e.Run, e.Step, e.KeepsLease, e.Attempt)
		for _, m := range e.Messages {
			for _, p := range m.Parts {
				switch {
				case p.ToolCall != nil:
					fmt.Fprintf(&b, " call %s %s", p.ToolCall.ID, p.ToolCall.Name)
				case p.ToolResult != nil:
					fmt.Fprintf(&b, " result %s %s", p.ToolResult.CallID, p.ToolResult.Status)
				}
			}
		}
		b.WriteString("\n")
	}
	for item, err := range d.store.Items(background, d.key, store.KindHead, "") {
		if err == nil {
			text, _ := json.Marshal(item.Head)
			fmt.Fprintf(&b, "HEAD %s\n", text)
		}
	}
	return b.String()
}
