package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/floortest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// resultBytes is how much the echo of a benchmark's step answers.
const resultBytes = 2048

// embeddedSteps is how many steps a message drives on the embedded engine, as app sets it.
const embeddedSteps = 16

// BenchmarkSteps measures plain durable steps (fsync on) of 1, 8 and 64 sessions
// at once, beside the floor: the same rows written straight into SQLite, before
// and after, in this run. A message drives 16 steps, as the CLI does, or one.
func BenchmarkSteps(b *testing.B) {
	for _, per := range []int{embeddedSteps, 1} {
		benchmarkSteps(b, per)
	}
}

func benchmarkSteps(b *testing.B, per int) {
	for _, sessions := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("sessions=%d/perInvocation=%d", sessions, per), func(b *testing.B) {
			steps := max(b.N/sessions, 1)
			floor := measureFloor(b, sessions, steps)
			b.ReportAllocs()
			b.ResetTimer()
			elapsed, _ := runSteps(b, sessions, steps, per)
			b.StopTimer()
			floor = (floor + measureFloor(b, sessions, steps)) / 2
			ours := float64(steps*sessions) / elapsed.Seconds()
			b.ReportMetric(ours, "steps/s")
			b.ReportMetric(floor, "floor-steps/s")
			b.ReportMetric(100*ours/floor, "%floor")
			b.ReportMetric(float64(elapsed.Nanoseconds())*float64(sessions)/float64(steps*sessions)/1e6, "ms/step")
		})
	}
}

// measureFloor writes at least 200 steps per session, so that a short run is not noise.
func measureFloor(b *testing.B, sessions, steps int) float64 {
	b.Helper()
	return floortest.Measure(b, b.TempDir(), sessions, entryBytes(b), max(steps, 200)).PerSecond()
}

// entryBytes is the size of a benchmark's entry as it is stored.
var entryBytes = func() func(testing.TB) int {
	var once sync.Once
	var size int
	return func(tb testing.TB) int {
		once.Do(func() {
			_, sizes := runSteps(tb, 1, 5, 1)
			size = sizes[2]
		})
		return size
	}
}()

// runSteps runs sessions of so many steps on a file and returns how long they
// took and how many bytes each entry of the first session has.
func runSteps(tb testing.TB, sessions, steps, perInvocation int) (time.Duration, []int) {
	tb.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(tb.TempDir(), "bench.db")})
	require.NoError(tb, err)
	defer func() { require.NoError(tb, db.Close()) }()
	counted := &countedStore{Store: db.Store(), first: benchKey(0)}
	w := setup(tb, func(cfg *runtime.Config) {
		cfg.Store, cfg.Queue, cfg.DeadLetters, cfg.Owner = counted, db.Queue(), db.DeadLetters(), db.Owner()
		cfg.StepsPerInvocation = perInvocation
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ended := make(chan struct{}, sessions)
	counted.ended = ended
	for i := range sessions {
		_, err := w.Start(ctx, runtime.StartParams{
			Key: benchKey(i), Agent: "lab", Caller: person,
			Input: llm.TextParts(fmt.Sprintf("- repeat: %d\n  call: echo\n  with: {size: %d}\n- say: done\n", steps, resultBytes)),
		})
		require.NoError(tb, err)
	}
	began := time.Now()
	working := make(chan error, 1)
	go func() { working <- w.Work(ctx, db.Queue(), runtime.WorkParams{Concurrency: sessions}) }()
	for range sessions {
		<-ended
	}
	elapsed := time.Since(began)
	cancel()
	require.NoError(tb, <-working)
	for i := range sessions {
		s, err := w.Session(context.Background(), benchKey(i))
		require.NoError(tb, err)
		require.Equal(tb, session.StatusCompleted, s.Status)
		require.EqualValues(tb, steps+1, s.Step)
	}
	return elapsed, counted.sizes
}

func benchKey(i int) session.Key {
	return session.Key{Tenant: session.DefaultTenant, ID: fmt.Sprintf("s%d", i)}
}

// countedStore notes the size and the time of each entry of one session, and when sessions end.
type countedStore struct {
	store.Store
	first session.Key
	ended chan<- struct{}
	sizes []int
	times []time.Time
}

func (c *countedStore) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	out, err := c.Store.Commit(ctx, p)
	if err != nil {
		return out, err
	}
	if p.Key == c.first {
		c.sizes, c.times = append(c.sizes, out.Bytes), append(c.times, time.Now())
	}
	if p.Entry.Status.Ended() {
		c.ended <- struct{}{}
	}
	return out, err
}

// BenchmarkLongSession runs 1,000 steps with 2 KB results and compares their
// beginning with their end: time per step and bytes per step must not grow.
func BenchmarkLongSession(b *testing.B) {
	const steps, window = 1000, 100
	for range min(b.N, 3) { // one run says it all: the number of steps is the point
		sizes, times := runLong(b, steps)
		per := func(from int) float64 { // median, because machines hiccup
			var took []time.Duration
			for i := from; i < from+window; i++ {
				took = append(took, times[i].Sub(times[i-1]))
			}
			slices.Sort(took)
			return float64(took[len(took)/2].Nanoseconds()) / 1e3
		}
		b.ReportMetric(per(10), "µs/step@10")
		b.ReportMetric(per(steps-window), "µs/step@1000")
		b.ReportMetric(undisturbed(times), "best-µs/step")
		share := perEngineAndCodec(b, steps)
		b.ReportMetric(float64(share.Nanoseconds())/1e3, "µs/engine+codec")
		b.ReportMetric(100*float64(share.Nanoseconds())/1e3/per(steps-window), "%engine+codec")
		b.ReportMetric(float64(sizes[10]), "B/step@10")
		b.ReportMetric(float64(sizes[steps-10]), "B/step@1000")
	}
}

// undisturbed returns how long a step takes, in microseconds, in the quickest run of
// 25 of them: what a busy machine tells of the program.
func undisturbed(times []time.Time) float64 {
	const window = 25
	best := time.Hour
	for i := window; i < len(times); i++ {
		best = min(best, times[i].Sub(times[i-window]))
	}
	return float64(best.Nanoseconds()) / 1e3 / window
}

func runLong(b *testing.B, steps int) ([]int, []time.Time) {
	b.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(b.TempDir(), "bench.db")})
	require.NoError(b, err)
	defer func() { require.NoError(b, db.Close()) }()
	ended := make(chan struct{}, 1)
	counted := &countedStore{Store: db.Store(), first: benchKey(0), ended: ended}
	w := setup(b, func(cfg *runtime.Config) {
		cfg.Store, cfg.Queue, cfg.DeadLetters, cfg.Owner = counted, db.Queue(), db.DeadLetters(), db.Owner()
		cfg.StepsPerInvocation = embeddedSteps
	})
	w.key = benchKey(0)
	_, err = w.Start(context.Background(), runtime.StartParams{
		Key: w.key, Agent: "lab", Caller: person, Input: llm.TextParts(fmt.Sprintf("- repeat: %d\n  call: echo\n  with: {size: %d}\n- say: done\n", steps, resultBytes)),
	})
	require.NoError(b, err)
	require.NoError(b, w.Drive(context.Background(), w.key, db.Queue().Only(w.key)))
	return counted.sizes, counted.times
}

// BenchmarkEngineAndCodec measures what the engine and the codec take of a plain
// step of a warm session of 1,000 steps: decide, plan, close, check, encode, decode, fold.
func BenchmarkEngineAndCodec(b *testing.B) {
	for _, steps := range []int{10, 1000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			s := warmSession(b, steps)
			b.ReportAllocs()
			for b.Loop() {
				engineAndCodec(b, s)
			}
		})
	}
}

// perEngineAndCodec is what the engine and the codec take of one step of such a session.
func perEngineAndCodec(b *testing.B, steps int) time.Duration {
	b.Helper()
	const rounds = 200
	s := warmSession(b, steps)
	began := time.Now()
	for range rounds {
		engineAndCodec(b, s)
	}
	return time.Since(began) / rounds
}

func warmSession(b *testing.B, steps int) *session.Session {
	b.Helper()
	s := &session.Session{Key: benchKey(0)}
	rules := session.Rules{Agent: "lab", Limits: session.Limits{Steps: -1, Tokens: -1, ActiveMillis: -1, CostMicros: -1}, Tools: []string{"echo"}}
	m := engine.Start(s, rules, llm.User("go"), benchStamp)
	_, err := journal.Encode(&m.Entry)
	require.NoError(b, err)
	require.NoError(b, engine.Apply(s, &m.Entry))
	for range steps {
		engineAndCodec(b, s)
	}
	return s
}

var benchStamp = engine.Stamp{
	Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), By: "step",
	Attempt: session.Attempt{ID: "AAAAAAAAAAAAAAAA", N: 1, For: 2}, Token: "AAAAAAAAAAAAAAAA",
}

var benchText = func() []byte {
	text := make([]byte, resultBytes)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz"[(i*i/3+i*7)%26]
	}
	return text
}()

func engineAndCodec(b *testing.B, s *session.Session) {
	b.Helper()
	wake := journal.NewWake(s.Key, s.Next(), journal.WakeStep)
	require.Equal(b, engine.Work, engine.Dispatch(engine.Facts{Now: benchStamp.Now, Wake: wake, Session: s, Claimed: true}))
	reply := engine.WithCallIDs(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
		{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "echo", Arguments: []byte(`{"size":2048}`)}},
	}}, s.Next())
	pending := *s
	pending.Calls = nil
	for _, c := range reply.ToolCalls() {
		pending.Calls = append(pending.Calls, session.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	plans := engine.Plan(&pending, "digest", func(session.Call, json.RawMessage) engine.Traits {
		return engine.Traits{Known: true, Effect: session.ReadOnly}
	})
	result := engine.Result(plans[0].Call, llm.ResultSuccess, string(benchText))
	m := engine.Close(s, engine.StepOutcome{Reply: &reply, Results: []llm.ToolResult{result}}, benchStamp)
	if err := engine.Check(s, &m.Entry); err != nil {
		b.Fatal(err)
	}
	payload, err := journal.Encode(&m.Entry)
	if err != nil {
		b.Fatal(err)
	}
	entry, err := journal.Decode(payload)
	if err != nil {
		b.Fatal(err)
	}
	if err := engine.Apply(s, &entry); err != nil {
		b.Fatal(err)
	}
}
