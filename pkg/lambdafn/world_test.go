package lambdafn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// clock is moved by hand.
type clock struct{ passed atomic.Int64 }

// epoch lies ahead, so that no context of a test ends while a slow machine works.
var epoch = time.Now().Add(24 * time.Hour).Truncate(time.Second)

func (c *clock) Now() time.Time          { return epoch.Add(time.Duration(c.passed.Load())) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// postponed is one message that was put off.
type postponed struct {
	receipt string
	delay   time.Duration
}

// line is a queue that remembers what was put off and what was sent.
type line struct {
	queue.Queue
	mu        sync.Mutex
	put       []postponed
	sent      []journal.Wake
	refuse    error
	panicking bool
}

func (l *line) Send(ctx context.Context, wakes ...journal.Wake) error {
	l.mu.Lock()
	l.sent = append(l.sent, wakes...)
	l.mu.Unlock()
	return l.Queue.Send(ctx, wakes...)
}

func (l *line) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.panicking {
		panic("no queue")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.put = append(l.put, postponed{d.Receipt, delay})
	return l.refuse
}

func (l *line) takeSent() []journal.Wake {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := l.sent
	l.sent = nil
	return sent
}

// moody is a store that can be made to fail.
type moody struct {
	store.Store
	claim func(context.Context) error
	read  func()
}

func (m *moody) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	if m.read != nil {
		m.read()
	}
	return m.Store.Entries(ctx, key, after)
}

func (m *moody) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if m.claim != nil && p.Mode == store.ClaimTake {
		if err := m.claim(ctx); err != nil {
			return store.Item{}, err
		}
	}
	return m.Store.Claim(ctx, p)
}

// world is an embedded engine with the lab in it and queues that are watched.
type world struct {
	t     testing.TB
	clock *clock
	store *moody
	queue *line
	dead  *line
	log   *logged
	cfg   lambdafn.Config
}

// logged is a log that can be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newWorld returns a world whose lab has some more tools.
func newWorld(t testing.TB, tools ...tool.Tool) *world {
	t.Helper()
	a := lab.Agent()
	a.Tools = slices.Concat(a.Tools, tools)
	registry, err := agent.NewRegistry(agent.Config{Models: agent.Models{"scripted": lab.Open}, Agents: []agent.Agent{a}})
	require.NoError(t, err)
	w := &world{t: t, clock: new(clock), log: new(logged)}
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: ":memory:", Now: w.clock.Now, Owner: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	// The commit's wakes go through Send, as on AWS, where no transaction holds table and queue.
	w.store, w.queue, w.dead = &moody{Store: apart{db.Store()}}, &line{Queue: db.Queue()}, &line{Queue: db.DeadLetters()}
	r, err := runtime.New(runtime.Config{
		Registry: registry, Store: w.store, Queue: w.queue, DeadLetters: w.dead, Owner: "test", Now: w.clock.Now, NewID: app.NewID,
	})
	require.NoError(t, err)
	w.cfg = lambdafn.Config{
		Runtime: r, Queue: w.queue, DeadLetters: w.dead, Now: w.clock.Now, Log: lambdafn.NewLog(w.log, slog.LevelDebug),
		APIID: "api-1", TenantClaim: "tenant", EventTenant: session.DefaultTenant,
	}
	return w
}

// apart is a store that leaves a commit's wakes to its caller.
type apart struct{ store.Store }

func (a apart) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	p.Wakes = nil
	done, err := a.Store.Commit(ctx, p)
	done.Enqueued = false
	return done, err
}

// start begins a session of the lab and returns its wake.
func (w *world) start(script string) journal.Wake {
	w.t.Helper()
	started, err := w.cfg.Runtime.Start(w.t.Context(), runtime.StartParams{
		Key: session.Key{Tenant: session.DefaultTenant}, Agent: "lab", Input: llm.TextParts(script),
	})
	require.NoError(w.t, err)
	sent := w.queue.takeSent()
	require.Len(w.t, sent, 1)
	require.Equal(w.t, started.Key, sent[0].Key())
	return sent[0]
}

func (w *world) stands(key session.Key) runtime.View {
	w.t.Helper()
	s, err := w.cfg.Runtime.View(w.t.Context(), key)
	require.NoError(w.t, err)
	return s
}

// message is an SQS record as Lambda hands it over.
func message(id, body string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: id, ReceiptHandle: "receipt-" + id, Body: body, EventSource: "aws:sqs",
		Attributes: map[string]string{"ApproximateReceiveCount": "1", "SentTimestamp": "1780000000000"},
	}
}

func wakeMessage(t testing.TB, id string, wake journal.Wake) events.SQSMessage {
	t.Helper()
	body, err := json.Marshal(wake)
	require.NoError(t, err)
	return message(id, string(body))
}

func sqsEvent(t testing.TB, records ...events.SQSMessage) []byte {
	t.Helper()
	if records == nil {
		records = []events.SQSMessage{}
	}
	raw, err := json.Marshal(events.SQSEvent{Records: records})
	require.NoError(t, err)
	return raw
}

// deliver hands records to a handler and returns the ids it wants again.
func deliver(t testing.TB, h lambdafn.Handler, records ...events.SQSMessage) []string {
	t.Helper()
	raw, err := h.Invoke(lambdaContext(t, time.Minute), sqsEvent(t, records...))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "null", "a null would fail the whole batch")
	var response events.SQSEventResponse
	require.NoError(t, json.Unmarshal(raw, &response))
	ids := []string{}
	for _, f := range response.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

// lambdaContext ends when Lambda would kill the sandbox.
func lambdaContext(t testing.TB, left time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), epoch.Add(left))
	t.Cleanup(cancel)
	return ctx
}

var errMoody = errors.New("moody: secret-of-the-store")

func need(t testing.TB, handler lambdafn.Handler, err error) lambdafn.Handler {
	t.Helper()
	require.NoError(t, err)
	return handler
}

func (w *world) logs(wants ...string) {
	w.t.Helper()
	for _, want := range wants {
		require.Contains(w.t, w.log.String(), want)
	}
	for line := range strings.Lines(w.log.String()) {
		require.True(w.t, json.Valid([]byte(line)), line)
	}
}
