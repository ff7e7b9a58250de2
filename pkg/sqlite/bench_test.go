package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/floortest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// BenchmarkStep is what a plain step costs through the ports (receive, claim,
// commit with a wake, acknowledge), durably, beside the floor measured in the
// same run: the same rows written straight into SQLite.
//
//	go test -run '^$' -bench Step ./pkg/sqlite
func BenchmarkStep(b *testing.B) {
	for _, sessions := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			const turns = 5 // they take turns, so that a busy machine is unfair to both
			steps := max(b.N/sessions/turns, 1)
			b.ReportAllocs()
			b.ResetTimer()
			b.StopTimer()
			var floor, ports floortest.Result
			for range turns {
				floor.Add(floortest.Measure(b, b.TempDir(), sessions, 900, steps))
				ports.Add(measurePorts(b, sessions, steps))
			}
			b.ReportMetric(ports.PerSecond(), "steps/s")
			b.ReportMetric(floor.PerSecond(), "floor-steps/s")
			b.ReportMetric(100*ports.PerSecond()/floor.PerSecond(), "%floor")
			b.ReportMetric(float64(ports.PerStep(sessions).Microseconds()), "µs/session-step")
		})
	}
}

// measurePorts drives sessions as a worker does: one goroutine receives and one
// per message works.
func measurePorts(b *testing.B, sessions, steps int) floortest.Result {
	b.Helper()
	db := open(b, file(b))
	ctx := context.Background()
	for i := range sessions {
		key := benchKey(i)
		head := journal.Head{Key: key, Status: session.StatusRunning, Agent: "lab", Title: "a benchmark", Task: 1, StatusSeq: 1, CreatedAt: time.Now(), UpdatedAt: time.Now()}
		_, err := db.Store().Commit(ctx, store.CommitParams{
			Key: key, Entry: benchEntry(1, nil), Items: []store.Item{store.HeadItem(head, 0)},
			Wakes: []journal.Wake{journal.NewWake(key, 2, journal.WakeStep)},
		})
		require.NoError(b, err)
	}
	var running, working sync.WaitGroup
	running.Add(sessions)
	receiving, stop := context.WithCancel(ctx)
	b.StartTimer()
	start := time.Now()
	var receiver sync.WaitGroup
	receiver.Go(func() {
		for {
			got, err := db.Queue().Receive(receiving, queue.ReceiveParams{Max: 64, Wait: time.Minute, Visibility: time.Minute})
			if err != nil {
				return
			}
			for _, d := range got {
				working.Go(func() {
					if err := benchStep(ctx, db, d, int64(steps)+1); err != nil {
						b.Error(err)
					}
					if d.Wake.Seq > int64(steps) {
						running.Done()
					}
				})
			}
		}
	})
	running.Wait()
	elapsed := time.Since(start)
	b.StopTimer()
	stop()
	receiver.Wait()
	working.Wait() // a session may end before the step before its last has acknowledged
	return floortest.Result{Steps: sessions * steps, Elapsed: elapsed}
}

func benchStep(ctx context.Context, db *DB, d queue.Delivery, last int64) error {
	key, seq := d.Wake.Key(), d.Wake.Seq
	now := time.Now()
	_, err := db.Store().Claim(ctx, store.ClaimParams{Key: key, Mode: store.ClaimTake, Owner: db.Owner() + "/1", Seq: seq, Now: now, Until: now.Add(20 * time.Second)})
	if err != nil {
		return err
	}
	p := store.CommitParams{Key: key, Entry: benchEntry(seq, benchMessages)}
	if seq < last {
		p.Wakes = []journal.Wake{journal.NewWake(key, seq+1, journal.WakeStep)}
	}
	if _, err := db.Store().Commit(ctx, p); err != nil {
		return err
	}
	return db.Queue().Acknowledge(ctx, d)
}

func benchKey(i int) session.Key {
	return session.Key{Tenant: session.DefaultTenant, ID: fmt.Sprintf("bench-%026d", i)}
}

// benchMessages make an entry of about 0.9 KB, compressed.
var benchMessages = func() []llm.Message {
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 900)
	for i := range text {
		text[i] = "abcdefghijklmnop"[r.IntN(16)]
	}
	return []llm.Message{llm.User(string(text)), llm.User("and a little more")}
}()

func benchEntry(seq int64, messages []llm.Message) journal.Entry {
	kind := session.KindStepped
	if seq == 1 {
		kind = session.KindStarted
	}
	return journal.Entry{
		V: journal.Format, Seq: seq, Kind: kind, At: time.Now().UTC(), By: "worker", Attempt: session.Attempt{ID: "01234567890123456789012345", N: 1, For: seq},
		Prev: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", Token: "0123456789abcdef", Task: 1, Run: 1, Step: seq, RulesAt: 1,
		Status: session.StatusRunning, Messages: messages, Used: journal.Used{Task: session.Amounts{Steps: 1000, Tokens: 1000}},
	}
}

func BenchmarkEncode(b *testing.B) {
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		e := benchEntry(2, benchMessages)
		payload, err := journal.Encode(&e)
		require.NoError(b, err)
		n = len(payload)
	}
	b.ReportMetric(float64(n), "bytes")
}
