package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// scenario is a day of the simulation.
type scenario struct {
	seed     uint64
	sessions int
	// tenants are the small ones, who share half of the sessions; one huge tenant has
	// the other half.
	tenants int
	// over is the time in which sessions begin.
	over time.Duration
	// surgeAt is when the huge tenant begins surge of its sessions within five minutes.
	surgeAt time.Duration
	surge   int
	// step is about how long a step takes, thinks how long a person.
	step, thinks time.Duration
	// concurrency is the mapping's MaximumConcurrency.
	concurrency int
	// outage of the queue: from when, how long, and whether requests hang.
	outageAt, outage time.Duration
	hangs            bool
	// What goes wrong, of one: a worker that dies at a request, a request that fails
	// before or after it was carried out, a message that comes twice.
	crash, fail, twice float64
	// partitionWrites is the rate of a partition, listShards over how many the sessions and
	// the waits of a tenant are spread in their indexes; 0 is what AWS and the program have.
	partitionWrites float64
	listShards      uint32
	// slow is how many times as long as usual the requests to the table take; 0 is once.
	slow float64
	// impatient callers do not try again.
	impatient bool
	// sweepAtOnce is how many items the sweep looks at side by side.
	sweepAtOnce int
	// What mutations take away.
	unfair, noSweep, noBackoff bool
	// limit ends a world that does not come to rest.
	limit time.Duration
}

// huge is the tenant with half of all sessions.
const huge = "huge"

// world is what the simulation runs in: AWS, the program, the people.
type world struct {
	scenario
	t        testing.TB
	chance   *chance
	began    time.Time
	under    store.Store
	table    *table
	steps    *sqs
	dead     *sqs
	registry *agent.Registry
	api      *runtime.Runtime
	workers  atomic.Int64
	running  sync.WaitGroup // what must have ended before the world does

	mu       sync.Mutex
	tracks   map[session.Key]*track
	started  int
	ended    int
	wrong    []string
	report   *report
	arriving bool
}

// track is what the world saw of a session.
type track struct {
	key        session.Key
	seq        int64
	status     session.Status
	effects    map[string]int
	answeredAt time.Time // when a person last began to
	movedAt    time.Time // when its newest entry was written
	resent     int       // for the entry after seq
	resentMost int
	endedAt    time.Time
}

// sandbox is one process of a function.
type sandbox struct {
	dead atomic.Bool
	name string
	r    *runtime.Runtime
}

type sandboxKey struct{}

var (
	errDied    = errors.New("the process died")
	errService = errors.New("simulated failure")
)

func newWorld(t testing.TB, s scenario) *world {
	t.Helper()
	w := &world{scenario: s, t: t, chance: newChance(s.seed), began: time.Now(), tracks: map[session.Key]*track{}, report: newReport(), arriving: true}
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: ":memory:", Owner: "simulation"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	w.under = db.Store()
	w.table = newTable(w.under, tableConfig{
		partitionWrites: cmp.Or(s.partitionWrites, partitionWrites), listShards: cmp.Or(s.listShards, listShards), lag: time.Second,
		latency: w.tableLatency, fault: w.tableFault, committed: w.committed, stamped: w.stamped,
	})
	latency := func(op string) time.Duration { return w.chance.about(6*time.Millisecond, "sqs", op) }
	again := func(op string) bool { return w.chance.next("twice", op) < w.twice }
	w.dead = newSQS(sqsConfig{latency: latency, fault: w.queueFault, fair: true})
	w.steps = newSQS(sqsConfig{maxReceives: 10, deadLetters: w.dead, latency: latency, fault: w.queueFault, again: again, fair: !s.unfair})
	w.registry, err = agent.NewRegistry(agent.Config{Agents: []agent.Agent{w.agent()}})
	require.NoError(t, err)
	w.api = w.process("api").r
	return w
}

// process starts a process with a runtime of its own.
func (w *world) process(function string) *sandbox {
	s := &sandbox{name: fmt.Sprintf("%s-%d", function, w.workers.Add(1))}
	var ids atomic.Int64
	r, err := runtime.New(runtime.Config{
		Registry: w.registry, Store: w.table, Queue: w.steps, DeadLetters: w.dead, Owner: s.name, Now: time.Now,
		NewID: func() string { return fmt.Sprintf("%s-%d", s.name, ids.Add(1)) },
		// A process works on another session each time, so little is worth keeping; and it
		// looks for signals less often, because nobody sends any.
		CacheBytes: 64 << 10, WatchEvery: 5 * time.Second, SweepAtOnce: w.sweepAtOnce,
	})
	require.NoError(w.t, err)
	s.r = r
	return s
}

// tableLatency is what a request takes: a few milliseconds, a transaction more.
func (w *world) tableLatency(op string, key session.Key) time.Duration {
	mean := map[string]time.Duration{"claim": 5, "commit": 8, "update": 8, "entries": 5, "items": 4, "find": 30}[op]
	return time.Duration(cmp.Or(w.slow, 1) * float64(w.chance.about(mean*time.Millisecond, "table", op, key.String())))
}

// tableFault is what becomes of a request to the table.
func (w *world) tableFault(ctx context.Context, op string, key session.Key) error {
	return w.fault(ctx, store.ErrUnavailable, "table", op, key.String())
}

// queueFault is what becomes of one to a queue, which for a while is not there.
func (w *world) queueFault(ctx context.Context, op string) error {
	if since := time.Since(w.began) - w.outageAt; w.outage > 0 && since >= 0 && since < w.outage {
		if w.hangs && op != "receive" {
			select { // three attempts of three seconds
			case <-time.After(9 * time.Second):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, errService)
	}
	if op == "receive" {
		return nil
	}
	return w.fault(ctx, queue.ErrUnavailable, "queue", op)
}

// fault kills the process that asks, before or after its request is carried out, or
// lets the request fail.
func (w *world) fault(ctx context.Context, unavailable error, words ...string) error {
	s, _ := ctx.Value(sandboxKey{}).(*sandbox)
	if s != nil && s.dead.Load() {
		return errDied
	}
	x := w.chance.next(append(words, "fault")...)
	switch {
	case x < w.crash && s != nil:
		s.dead.Store(true)
		w.report.add("processes that died", 1)
		if x < w.crash/2 {
			return afterError{errDied}
		}
		return errDied
	case x >= w.crash && x < w.crash+w.fail:
		w.report.add("requests that failed", 1)
		err := fmt.Errorf("%w: %w", unavailable, errService)
		if x < w.crash+w.fail/2 {
			return afterError{err}
		}
		return err
	}
	return nil
}

// committed sees each entry when it is written: it must be the next one. Who waits
// for a person gets an answer.
func (w *world) committed(key session.Key, e *journal.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tr := w.tracks[key]
	if tr == nil {
		tr = &track{key: key, effects: map[string]int{}}
		w.tracks[key] = tr
	}
	if e.Seq != tr.seq+1 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: entry %d after %d", key, e.Seq, tr.seq))
	}
	w.report.add("entries", 1)
	if e.Seq == 1 {
		w.started++
	}
	since := tr.movedAt
	if e.Kind == session.KindResumed {
		since = tr.answeredAt
	}
	switch end := w.began.Add(w.outageAt + w.outage); {
	case e.Seq == 1:
	case w.outage > 0 && since.After(end.Add(-w.outage)) && since.Before(end):
		w.report.recovers(time.Since(end))
	case e.Kind == session.KindResumed:
		w.report.turnaround(key.Tenant, time.Since(since))
	}
	tr.seq, tr.status, tr.movedAt, tr.resent = e.Seq, e.Status, time.Now(), 0
	if e.Status.Ended() {
		w.ended++
		tr.endedAt = time.Now()
	}
	if len(e.Waits) > 0 {
		w.running.Add(1)
		thinks := w.chance.about(w.thinks, "thinks", key.String())
		time.AfterFunc(thinks, func() {
			defer w.running.Done()
			w.answer(key)
		})
	}
}

// stamped sees what the sweep is about to send for.
func (w *world) stamped(head *journal.Head) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tr := w.tracks[head.Key]
	tr.resent++
	tr.resentMost = max(tr.resentMost, tr.resent)
	if w.noBackoff {
		soon := time.Now().Add(time.Second)
		head.Due = &soon
	}
}

// effect is what a tool did to the outside.
func (w *world) effect(key session.Key, call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tracks[key].effects[call]++
}

// atRest reports whether every session that began has ended and nobody begins one.
func (w *world) atRest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.arriving && w.started == w.ended
}

// run lets the world go on until it is at rest, and an hour more, so that what is
// left in the queue can do harm.
func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background())
	var machines sync.WaitGroup
	steps := newFunction(w, "step", w.steps, w.concurrency, 360*time.Second)
	machines.Go(func() { steps.poll(ctx) })
	dead := newFunction(w, "sweep", w.dead, 2, 110*time.Second)
	machines.Go(func() { dead.poll(ctx) })
	if !w.noSweep {
		machines.Go(func() { w.sweeps(ctx) })
	}
	machines.Go(func() { w.people(ctx) })
	for !w.atRest() && time.Since(w.began) < w.limit {
		time.Sleep(time.Minute)
		w.report.depth(w.steps.waits())
	}
	w.report.restAfter = time.Since(w.began)
	if w.atRest() {
		time.Sleep(time.Hour)
	}
	stop()
	machines.Wait()
	w.running.Wait()
	steps.all.Wait()
	dead.all.Wait()
	w.report.faults = w.faults()
}

// sweeps runs the sweep each minute.
func (w *world) sweeps(ctx context.Context) {
	s := w.process("sweep")
	handler := w.handler("sweep", s)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		began, before := time.Now(), w.table.found()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
		answer, err := handler.Invoke(bounded, []byte(`{}`))
		cancel()
		var swept struct{ Resent, Resumed, Expired int }
		if err == nil {
			require.NoError(w.t, json.Unmarshal(answer, &swept))
		}
		w.report.sweep(time.Since(began), err != nil, swept.Resent+swept.Resumed, w.table.found()-before)
	}
}

// faults are what must not be when the world has come to rest: a session that has not
// ended well, an entry out of order or twice, an effect twice, a message that is left.
func (w *world) faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	faults := slices.Clone(w.wrong)
	if w.started != w.sessions {
		faults = append(faults, fmt.Sprintf("%d of %d sessions began", w.started, w.sessions))
	}
	for key, tr := range w.tracks {
		if tr.status != session.StatusCompleted {
			faults = append(faults, fmt.Sprintf("%s is %s at entry %d", key, tr.status, tr.seq))
		}
		for call, times := range tr.effects {
			if times != 1 {
				faults = append(faults, fmt.Sprintf("%s: call %s had its effect %d times", key, call, times))
			}
		}
		if hash(key.ID)%64 != 0 {
			continue // their journals are as alike as their entries
		}
		var entries []journal.Entry
		for e, err := range w.under.Entries(context.Background(), key, 0) {
			if err != nil {
				faults = append(faults, fmt.Sprintf("%s: %v", key, err))
			}
			entries = append(entries, e)
		}
		folded, err := engine.Fold(key, entries)
		if err != nil || folded.Version != tr.seq || folded.Status != session.StatusCompleted {
			faults = append(faults, fmt.Sprintf("%s does not fold: %v", key, err))
		}
	}
	if visible, all := w.steps.waits(); all > 0 {
		faults = append(faults, fmt.Sprintf("%d messages are left in the queue, %d of them visible", all, visible))
	}
	slices.Sort(faults)
	return faults
}
