package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// clock is moved by hand, so that leases, graces and deadlines cost no time.
type clock struct{ passed atomic.Int64 }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *clock) Now() time.Time          { return epoch.Add(time.Duration(c.passed.Load())) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// world is what outlives a process: the data, the queue and what tools did.
type world struct {
	t       testing.TB
	clock   *clock
	key     session.Key
	cfg     runtime.Config
	store   store.Store
	queue   *sqlite.Queue
	dead    *sqlite.Queue
	effects *effects
	reader  *runtime.Runtime
	owners  int
	rules   session.TaskRules // that start asks for
	number  int               // of the session
	// suspended is the checkpoint of its suspension, read before others race for it.
	suspended string
	cut       bool // a call was cut off before it could ask
}

// effects counts what tools did to the outside, by what and for which call.
type effects struct {
	mu   sync.Mutex
	made map[string]int
	log  []string
}

func (e *effects) add(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made[what]++
	e.log = append(e.log, what)
}

func (e *effects) count(what string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.made[what]
}

func (e *effects) all() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]int{}
	for k, n := range e.made {
		out[k] = n
	}
	return out
}

func newEffects() *effects { return &effects{made: map[string]int{}} }

// newWorld opens an embedded engine in memory with one or more agents.
func newWorld(t testing.TB, made *effects, agents ...agent.Agent) *world {
	t.Helper()
	registry, err := agent.NewRegistry(agent.Config{Agents: agents})
	require.NoError(t, err)
	return newWorldOf(t, made, registry)
}

func newWorldOf(t testing.TB, made *effects, registry *agent.Registry) *world {
	t.Helper()
	w := &world{t: t, clock: new(clock), effects: made, number: 1, key: session.Key{Tenant: session.DefaultTenant, ID: "s1"}}
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: ":memory:", Now: w.clock.Now, Owner: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	w.store, w.queue, w.dead = openStore(t, db), db.Queue(), db.DeadLetters()
	w.cfg = runtime.Config{
		Registry: registry, Store: w.store, Queue: w.queue, DeadLetters: w.dead, Now: w.clock.Now, NewID: newID,
	}
	w.reader = w.process().Runtime
	return w
}

// another returns the same world with a session nobody has started and effects nobody has had.
func (w *world) another() *world {
	next := *w
	next.number++
	next.key.ID = fmt.Sprintf("s%d", next.number)
	next.effects.mu.Lock()
	defer next.effects.mu.Unlock()
	next.effects.made, next.effects.log, next.cut = map[string]int{}, nil, false
	next.queue = w.queue.Only(next.key)
	next.cfg.Queue = next.queue
	return &next
}

// process is one worker: its own runtime, cache and owner on the world's data.
type process struct {
	*runtime.Runtime
	w     *world
	store store.Store
	queue queue.Queue
	fuse  *fuse
	now   func() time.Time
}

func (w *world) process(change ...func(*runtime.Config)) *process {
	w.t.Helper()
	cfg := w.cfg
	w.owners++
	cfg.Owner = fmt.Sprintf("worker-%d", w.owners)
	for _, c := range change {
		c(&cfg)
	}
	r, err := runtime.New(cfg)
	require.NoError(w.t, err)
	return &process{Runtime: r, w: w, store: cfg.Store, queue: cfg.Queue, now: cfg.Now}
}

var errNoRest = errors.New("the session does not come to rest")

// settle does what workers and the sweep do, time passing between, until the
// session rests, and then on until no message is left that could disturb it.
func (p *process) settle() error {
	ctx := context.Background()
	quiet := 0
	for range 400 {
		worked, err := p.deliverOne(ctx)
		if err != nil {
			return err
		}
		if worked {
			quiet = 0
			continue
		}
		p.w.flush()
		resting, err := p.w.resting()
		switch {
		case err != nil:
			return err
		case !resting:
			p.w.clock.advance(5 * time.Second)
		case quiet == 1:
			return nil
		default: // what a dead worker had received comes back after a minute
			quiet++
			p.w.clock.advance(70 * time.Second)
		}
		if _, err := p.Sweep(ctx); err != nil {
			return err
		}
	}
	return errNoRest
}

// flushTenant has nothing but what flush writes.
const flushTenant = "flush"

// flush makes the queue carry out what it was told: an acknowledgement waits a
// little for the next transaction, by a clock that is not ours.
func (w *world) flush() {
	_, _ = w.store.Update(context.Background(), session.Key{Tenant: flushTenant}, store.IdempotencyItem(journal.Idempotency{Key: newID()}, 0))
}

// work delivers what is there now, without letting time pass.
func (p *process) work() error {
	for range 400 {
		if worked, err := p.deliverOne(context.Background()); err != nil || !worked {
			return err
		}
	}
	return errNoRest
}

// deliverOne receives one message and does with it what a worker does.
func (p *process) deliverOne(ctx context.Context) (bool, error) {
	deliveries, err := p.queue.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: time.Minute})
	if err != nil || len(deliveries) == 0 {
		return false, err
	}
	d := deliveries[0]
	disposition, err := p.Deliver(ctx, d.Named())
	switch {
	case p.fuse.blown():
		return true, errDied
	case err != nil:
		return true, p.queue.Postpone(ctx, d, time.Second)
	case disposition.Keep > 0:
		return true, p.queue.Postpone(ctx, d, disposition.KeepAfter(d.Receives))
	}
	return true, p.queue.Acknowledge(ctx, d)
}

// resting reports whether the session waits for people or has ended.
func (w *world) resting() (bool, error) {
	heads := w.items(store.KindHead)
	if len(heads) == 0 {
		return true, nil
	}
	if heads[0].Head.Gone(w.clock.Now()) {
		return heads[0].Head.Deleted, nil
	}
	if status := heads[0].Head.Status; status != session.StatusSuspended {
		return status.Resting(), nil
	}
	waits, err := w.reader.Waits(context.Background(), w.key)
	for _, record := range waits {
		if record.State == session.WaitOpen || record.HeldLast && record.State == session.WaitAnswered {
			return true, err
		}
	}
	return false, err
}

func (w *world) session() *session.Session {
	w.t.Helper()
	s, err := w.reader.Session(context.Background(), w.key)
	require.NoError(w.t, err)
	return s
}

func (w *world) journal() []journal.Entry {
	w.t.Helper()
	entries, err := w.reader.Journal(context.Background(), w.key)
	require.NoError(w.t, err)
	return entries
}

func (w *world) kinds() []session.Kind {
	w.t.Helper()
	var kinds []session.Kind
	for _, e := range w.journal() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (w *world) waits() []journal.WaitRecord {
	w.t.Helper()
	records, err := w.reader.Waits(context.Background(), w.key)
	require.NoError(w.t, err)
	return records
}

// open returns the open wait of a kind, or the newest one of that kind.
func (w *world) open(kind session.WaitKind) journal.WaitRecord {
	w.t.Helper()
	var found journal.WaitRecord
	for _, record := range w.waits() {
		if record.Wait.Kind == kind && (found.State != session.WaitOpen || record.State == session.WaitOpen) {
			found = record
		}
	}
	require.NotEmpty(w.t, found.Wait.ID, "no wait of kind %s", kind)
	return found
}

func (w *world) items(kind store.ItemKind) []store.Item {
	w.t.Helper()
	var items []store.Item
	for item, err := range w.store.Items(context.Background(), w.key, kind, "") {
		require.NoError(w.t, err)
		items = append(items, item)
	}
	return items
}

func (w *world) head() store.Item {
	w.t.Helper()
	items := w.items(store.KindHead)
	require.Len(w.t, items, 1)
	return items[0]
}

func (w *world) update(item store.Item) store.Item {
	w.t.Helper()
	stored, err := w.store.Update(context.Background(), w.key, item)
	require.NoError(w.t, err)
	return stored[0]
}

// start begins the session and works until nothing is left to do now.
func (w *world) start(p *process, input string) {
	w.t.Helper()
	_, err := p.Start(context.Background(), runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts(input), Caller: person, Rules: w.rules})
	require.NoError(w.t, err)
}

func (w *world) run(p *process, input string) {
	w.t.Helper()
	w.start(p, input)
	require.NoError(w.t, p.work())
}

// submit answers the open wait of a kind.
func (w *world) submit(p *process, kind session.WaitKind, a session.Answer) (runtime.Submitted, error) {
	w.t.Helper()
	record := w.open(kind)
	return p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, a)})
}

var answerKinds = map[session.WaitKind]session.AnswerKind{
	session.WaitClientTool: session.AnswerClientTool, session.WaitApproval: session.AnswerApproval, session.WaitQuestion: session.AnswerReply,
	session.WaitInput: session.AnswerMessage, session.WaitChild: session.AnswerChild, session.WaitUnknown: session.AnswerVerdict,
}

// fill names the wait in an answer.
func fill(wait session.Wait, a session.Answer) session.Answer {
	a.Wait, a.ToolCallID, a.ApprovalID = wait.ID, wait.Call, wait.Nonce
	if a.Kind == "" {
		a.Kind = answerKinds[wait.Kind]
	}
	return a
}

func yes() session.Answer { v := true; return session.Answer{Approved: &v} }
func no() session.Answer  { v := false; return session.Answer{Approved: &v} }

func text(v string) session.Answer { return session.Answer{Text: &v} }

// codeOf returns the code of a refusal, "" for none.
func codeOf(err error) runtime.Code {
	if err == nil {
		return ""
	}
	return runtime.AsError(err).Code
}
