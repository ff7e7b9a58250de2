// Command large shows that a step costs the same whatever the file holds: at a session's tenth step
// and at its ten thousandth, with an empty data file and with one of many sessions, open waits and
// gigabytes, and while sessions are deleted.
//
//	go run ./large -folder /mnt/disk -sessions 100000 -waits 10000 -gigabytes 10
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/adjourn/adjourn/bench/work"
	"github.com/adjourn/adjourn/bench/worker"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	adjourn "github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func main() {
	folder := flag.String("folder", "", "where the data files are made, and left")
	sessions := flag.Int("sessions", 100_000, "sessions that have ended")
	waits := flag.Int("waits", 10_000, "sessions that wait")
	gigabytes := flag.Float64("gigabytes", 10, "what the inputs of the ended sessions weigh")
	steps := flag.Int("steps", 10_000, "steps of the session that is measured")
	flag.Parse()
	if err := run(*folder, *sessions, *waits, *gigabytes, *steps); err != nil {
		log.Fatal(err)
	}
}

func run(folder string, sessions, waits int, gigabytes float64, steps int) error {
	if folder == "" {
		dir, err := os.MkdirTemp("", "adjourn-large")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // what is left is seen
		folder = dir
	}
	ctx := context.Background()
	fmt.Printf("%-44s %9s %9s %9s %9s %9s\n", "", "p50 µs", "p99 µs", "max ms", "allocs", "bytes")
	if err := onFile(ctx, filepath.Join(folder, "small.db"), func(e *engine) error {
		return e.measure(ctx, "empty file", steps, nil)
	}); err != nil {
		return err
	}
	return onFile(ctx, filepath.Join(folder, "large.db"), func(e *engine) error {
		began := time.Now()
		size := int(gigabytes * (1 << 30) / float64(max(sessions, 1)))
		if err := e.fill(ctx, "old", sessions, size, work.Plan{}); err != nil {
			return err
		}
		if err := e.fill(ctx, "wait", waits, 0, work.Plan{Wait: true}); err != nil {
			return err
		}
		info, err := os.Stat(e.app.Data)
		if err != nil {
			return err
		}
		log.Printf("filled in %s", time.Since(began).Round(time.Second))
		if err := e.measure(ctx, fmt.Sprintf("%d sessions, %d waits, %.1f GB", sessions, waits, float64(info.Size())/(1<<30)), steps, nil); err != nil {
			return err
		}
		return e.measure(ctx, "while sessions are deleted", steps, func(ctx context.Context, n int) error {
			if n == sessions {
				return errEnough
			}
			return e.store.Delete(ctx, key(name("old", n)))
		})
	})
}

type engine struct {
	app   *embedded.App
	store store.Store
	meter *work.Meter
}

func onFile(ctx context.Context, path string, do func(*engine) error) (err error) {
	e := &engine{meter: &work.Meter{OnStep: func(string, int) {}}}
	step := func(session string, n int) { e.meter.OnStep(session, n) }
	e.app, err = embedded.Open(ctx, embedded.Config{
		Registry: worker.Registry(&work.Meter{OnStep: step}), Data: path,
		Decorate: func(p app.Parts) app.Parts {
			e.store = p.Store
			return p
		},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() {
		if worked := e.app.Runtime.Work(ctx, e.app.Queue(), adjourn.WorkParams{Concurrency: 64, SweepEvery: time.Second}); worked != nil {
			log.Fatal(worked)
		}
	})
	err = do(e)
	stop()
	working.Wait()
	return errors.Join(err, e.app.Close())
}

func key(id string) session.Key { return session.Key{Tenant: session.DefaultTenant, ID: id} }

func name(kind string, n int) string { return fmt.Sprintf("%s%06d", kind, n) }

// fill runs sessions, 64 at once, until each rests.
func (e *engine) fill(ctx context.Context, kind string, sessions, inputBytes int, p work.Plan) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range 64 {
		group.Go(func() error {
			random := rand.NewChaCha8([32]byte{byte(next.Load())})
			padding := make([]byte, inputBytes*3/4) // as base64 it has inputBytes, which no compression makes fewer
			for {
				n := int(next.Add(1)) - 1
				if n >= sessions {
					return nil
				}
				_, _ = random.Read(padding) // it never fails
				id := name(kind, n)
				parts := llm.TextParts(worker.Input(id, p))
				if inputBytes > 0 {
					parts = append(parts, llm.TextParts(base64.StdEncoding.EncodeToString(padding))...)
				}
				if _, err := e.app.Runtime.Start(ctx, adjourn.StartParams{Key: key(id), Agent: worker.Agent, Input: parts}); err != nil {
					return err
				}
				if _, err := e.app.Runtime.AwaitRest(ctx, key(id), 0, time.Minute); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// window is how many steps are looked at, at each place of the session.
const window = 100

// errEnough is what has nothing left to do.
var errEnough = errors.New("enough")

// measure runs one session and prints its steps near the tenth and near the last. Meanwhile
// beside, if there is one, is called again and again, until it returns errEnough.
func (e *engine) measure(ctx context.Context, what string, steps int, beside func(ctx context.Context, n int) error) error {
	times := make([]time.Time, steps)
	memory := map[int]goruntime.MemStats{}
	e.meter.OnStep = func(_ string, n int) {
		if n == 10 || n == 10+window || n == steps-window-1 || n == steps-1 {
			var m goruntime.MemStats
			goruntime.ReadMemStats(&m)
			memory[n] = m
		}
		times[n] = time.Now()
	}
	id := fmt.Sprintf("measured%d", time.Now().UnixNano())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var deleting sync.WaitGroup
	var deleted int
	if beside != nil {
		deleting.Go(func() {
			for ; ctx.Err() == nil; deleted++ {
				err := beside(ctx, deleted)
				if errors.Is(err, errEnough) {
					return
				}
				if err != nil && ctx.Err() == nil {
					log.Fatal(err)
				}
			}
		})
	}
	if _, err := e.app.Runtime.Start(ctx, adjourn.StartParams{Key: key(id), Agent: worker.Agent, Input: llm.TextParts(worker.Input(id, work.Plan{Steps: steps}))}); err != nil {
		return err
	}
	for {
		rested, err := e.app.Runtime.AwaitRest(ctx, key(id), 0, time.Minute)
		if err != nil {
			return err
		}
		if rested {
			break
		}
	}
	stop()
	deleting.Wait()
	for _, from := range []int{10, steps - window - 1} {
		var gaps []time.Duration
		for n := from + 1; n <= from+window; n++ {
			gaps = append(gaps, times[n].Sub(times[n-1]))
		}
		slices.Sort(gaps)
		allocs := (memory[from+window].Mallocs - memory[from].Mallocs) / window
		bytes := (memory[from+window].TotalAlloc - memory[from].TotalAlloc) / window
		fmt.Printf("%-44s %9.0f %9.0f %9.1f %9d %9d\n", fmt.Sprintf("%s, step %d", what, from),
			micros(gaps[window/2]), micros(gaps[window-2]), micros(gaps[window-1])/1e3, allocs, bytes)
	}
	if beside != nil {
		var longest time.Duration
		for n := 1; n < steps; n++ {
			longest = max(longest, times[n].Sub(times[n-1]))
		}
		fmt.Printf("%d deletions beside; the longest of all %d steps took %.1f ms\n", deleted, steps, micros(longest)/1e3)
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
