//go:build aws

package dynamostore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// chain is a runtime that works like the step function: one step a message. Its
// clock is moved by hand and its ids are counted, so that two chains that do the
// same write the same.
type chain struct {
	*runtime.Runtime
	t     testing.TB
	key   session.Key
	store store.Store
	queue *countedQueue
	now   atomic.Int64
	ids   atomic.Int64
}

// countedQueue counts what is sent.
type countedQueue struct {
	queue.Queue
	sends atomic.Int64
}

func (q *countedQueue) Send(ctx context.Context, wakes ...journal.Wake) error {
	q.sends.Add(int64(len(wakes)))
	return q.Queue.Send(ctx, wakes...)
}

// newChain wires a runtime with the repository's agents to a store; without one,
// to the embedded engine whole. The queue is the embedded one either way.
func newChain(t testing.TB, on store.Store) *chain {
	t.Helper()
	c := &chain{t: t, key: key, store: on}
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: ":memory:", Now: c.Now, Owner: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c.queue = &countedQueue{Queue: db.Queue()}
	if on == nil {
		c.store = db.Store()
	}
	registry, err := agents.Registry()
	require.NoError(t, err)
	c.Runtime, err = runtime.New(runtime.Config{
		Registry: registry, Store: c.store, Queue: c.queue, DeadLetters: db.DeadLetters(), Owner: "worker", Now: c.Now,
		NewID:      func() string { return fmt.Sprintf("%016d", c.ids.Add(1)) },
		WatchEvery: time.Hour, CommitTimeout: time.Minute,
		Files: tool.Files{Folder: os.TempDir()}, // below which each test has its folder
	})
	require.NoError(t, err)
	return c
}

func (c *chain) Now() time.Time { return epoch.Add(time.Duration(c.now.Load())) }

var person = runtime.Caller{Who: "ann", From: "test"}

func (c *chain) start(script string) {
	c.t.Helper()
	_, err := c.Start(c.t.Context(), runtime.StartParams{Key: c.key, Agent: "lab", Input: llm.TextParts(script), Caller: person, IdempotencyKey: c.key.ID + script})
	require.NoError(c.t, err)
}

// deliverOne works on one message, if there is one.
func (c *chain) deliverOne() bool {
	c.t.Helper()
	ctx := c.t.Context()
	deliveries, err := c.queue.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: 12 * time.Hour})
	require.NoError(c.t, err)
	if len(deliveries) == 0 {
		return false
	}
	d := deliveries[0]
	disposition, err := c.Deliver(ctx, d.Wake)
	require.NoError(c.t, err)
	if disposition.Keep > 0 {
		require.NoError(c.t, c.queue.Postpone(ctx, d, disposition.Keep))
	} else {
		require.NoError(c.t, c.queue.Acknowledge(ctx, d))
	}
	return true
}

// settle works until the session rests, time passing where there is nothing to do.
func (c *chain) settle() {
	c.t.Helper()
	for range 2000 {
		if c.deliverOne() {
			continue
		}
		s, err := c.Session(c.t.Context(), c.key)
		require.NoError(c.t, err)
		if s.Status != session.StatusRunning {
			return
		}
		c.now.Add(int64(5 * time.Second))
		_, err = c.Sweep(c.t.Context())
		require.NoError(c.t, err)
	}
	require.Fail(c.t, "the session does not come to rest")
}

// openWaits are the waits nobody has answered, in their order.
func (c *chain) openWaits() []session.Wait {
	c.t.Helper()
	records, err := c.Waits(c.t.Context(), c.key)
	require.NoError(c.t, err)
	var open []session.Wait
	for _, r := range records {
		if r.State == session.WaitOpen {
			open = append(open, r.Wait)
		}
	}
	return open
}

// answer answers a wait; no says no where one can.
func (c *chain) answer(w session.Wait, no bool) {
	c.t.Helper()
	yes, name := !no, "Ada"
	a := session.Answer{Wait: w.ID, ToolCallID: w.Call}
	switch w.Kind {
	case session.WaitApproval:
		a.Kind, a.ApprovalID, a.Approved = session.AnswerApproval, w.Nonce, &yes
		if no {
			a.Reason = "not today"
		}
	case session.WaitQuestion:
		a.Kind, a.QuestionID = session.AnswerReply, w.Question.ID
		switch w.Question.Kind {
		case session.QuestionText:
			a.Text = &name
		case session.QuestionChoice:
			a.Selected = []string{w.Question.Choices[0].ID}
		case session.QuestionMultiChoice:
			a.Selected = []string{w.Question.Choices[0].ID, w.Question.Choices[1].ID}
		}
	case session.WaitClientTool:
		a.Kind, a.Result = session.AnswerClientTool, []byte(`{"lat": 1.5}`)
		if no {
			a.Result, a.Error = nil, "no signal"
		}
	case session.WaitInput:
		a.Kind, a.Message = session.AnswerMessage, llm.TextParts("[{say: thanks}]")
	case session.WaitChild, session.WaitUnknown:
		require.Fail(c.t, "the lab has none of these")
	}
	_, err := c.Submit(c.t.Context(), runtime.SubmitParams{Key: c.key, Answer: a, Caller: person})
	require.NoError(c.t, err)
}

// live runs a session to its end: works, answers what is asked, the last first,
// and starts each further turn.
func (c *chain) live(turns []string, no bool) {
	c.t.Helper()
	for _, script := range turns {
		c.start(script)
		c.settle()
		for range 20 {
			open := c.openWaits()
			if len(open) == 0 {
				break
			}
			c.now.Add(int64(time.Minute))
			c.answer(open[len(open)-1], no)
			c.settle()
		}
	}
}

// TestJournals runs the same sessions on the embedded engine and on this one:
// every entry must be the same, byte by byte, and every other record.
func TestJournals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, turns := range map[string][]string{
		"text":            {`[{say: hello}]`},
		"turns":           {`[{say: hello}]`, `[{call: echo, with: {text: again}}, {say: bye}]`, `[{say: and again}]`},
		"read-only steps": {`[{repeat: 12, call: echo, with: {size: 2048}}, {say: done}]`},
		"big results":     {`[{call: echo, with: {size: 300000}}, {call: echo, with: {size: 900000}}, {say: done}]`},
		"several calls":   {`[{calls: [{call: echo, with: {text: a}}, {call: add_note, with: {text: b}}, {call: fault}, {call: boom}]}, {say: done}]`},
		"state":           {`[{call: add_note, with: {text: a}}, {call: set_note, with: {text: b}}, {calls: [{call: add_note, with: {text: c}}, {call: add_note, with: {text: d}}]}, {say: done}]`},
		"effects":         {`[{call: append_line, with: {path: DIR/a, text: x}}, {call: append_once, with: {path: DIR/b, text: y}}, {calls: [{call: append_line, with: {path: DIR/a, text: z}}, {call: echo, with: {text: w}}]}, {say: done}]`},
		"approval":        {`[{call: deploy, with: {service: web}}, {say: done}]`},
		"some approved":   {`[{calls: [{call: refund, with: {order: A, amount: 50}}, {call: refund, with: {order: B, amount: 500}}, {call: deploy, with: {service: web}}, {call: echo, with: {text: x}}]}, {say: done}]`},
		"questions":       {`[{call: pick_color}, {calls: [{call: pick_toppings}, {call: get_name}]}, {say: done}]`},
		"client tool":     {`[{call: locate, with: {what: me}}, {say: done}]`},
		"input":           {`[{need: "which region?"}, {say: done}]`},
		"finish":          {`[{call: finish, with: {answer: 42, exact: 12345678901234567890}}]`},
		"retries":         {`[{fail: rate_limited}, {fail: overloaded}, {call: echo, with: {text: x}}, {say: done}]`},
		"refused":         {`[{fail: invalid}]`},
		"bad arguments":   {`[{call: echo, with: {size: -1}}, {call: nothing}, {say: done}]`},
	} {
		for _, no := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/no=%t", name, no), func(t *testing.T) {
				t.Parallel()
				var scripts []string
				for _, script := range turns {
					scripts = append(scripts, strings.ReplaceAll(script, "DIR", dir+"/"+fmt.Sprint(no)))
				}
				embedded, ours := newChain(t, nil), newChain(t, newFixture(t).store)
				embedded.live(scripts, no)
				ours.live(scripts, no)
				want, got := embedded.journal(), ours.journal()
				require.Len(t, got, len(want))
				require.True(t, want[len(want)-1].Status.Ended(), "it came to its end")
				t.Logf("%d entries, %s", len(want), want[len(want)-1].Status)
				for i := range want {
					require.Equal(t, want[i], got[i], "entry %d", i+1)
				}
				for _, kind := range []store.ItemKind{store.KindHead, store.KindWait, store.KindRun, store.KindTool, store.KindMail, store.KindAudit} {
					require.Equal(t, embedded.items(kind), ours.items(kind), kind)
				}
			})
		}
	}
}

func (c *chain) journal() []journal.Entry {
	c.t.Helper()
	entries, err := c.Journal(c.t.Context(), c.key)
	require.NoError(c.t, err)
	require.NotEmpty(c.t, entries)
	return entries
}

func (c *chain) items(kind store.ItemKind) []store.Item {
	c.t.Helper()
	var all []store.Item
	for item, err := range c.store.Items(c.t.Context(), c.key, kind, "") {
		require.NoError(c.t, err)
		all = append(all, item)
	}
	return all
}
