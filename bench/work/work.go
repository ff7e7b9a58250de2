// Package work is the work that every engine of the comparison does, and how it is measured.
//
// Each engine is a program of its own, so that none pays for what another links. Its main
// function hands an [Open] to [Main]; package peers builds and runs the programs by turns.
// A step brings a reply of 1 KB and the result of a tool, and is durable when the next one
// begins.
package work

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Reply is what the model of each step says: 1 KB of text.
var Reply = strings.Repeat("The tower is 57 m high. ", 43)[:1024]

// Plan is what a session does.
type Plan struct {
	Steps int `json:"steps"`
	// Effect says that the tool of each step has a side effect, which must not happen twice.
	Effect bool `json:"effect,omitempty"`
	// Wait makes the session wait for an answer before its first step.
	Wait bool `json:"wait,omitempty"`
}

// Engine runs sessions in a data folder.
type Engine interface {
	// Start begins a session and does not wait for it.
	Start(ctx context.Context, session string, p Plan) error
	// Finish returns when all sessions have ended, also those that an earlier process began.
	Finish(ctx context.Context, sessions []string) error
	// Rested returns when a session waits for its answer; Answer gives it.
	Rested(ctx context.Context, session string) error
	Answer(ctx context.Context, session string) error
	Close() error
}

// Lagging is an [Engine] with a door: after Finish it tells how long the last answer took from
// the last commit.
type Lagging interface {
	Lag() time.Duration
}

// Open opens the engine on a folder. In each step it calls m.Step.
type Open func(ctx context.Context, folder string, m *Meter) (Engine, error)

// Meter takes the time of each step. Its methods may be called at the same time.
type Meter struct {
	mu    sync.Mutex
	times map[string][]time.Time
	first chan struct{}
	// OnStep, if set, is called in each step; nothing else is counted then.
	OnStep func(session string, step int)
	// effects takes a line for each side effect; nil: nobody counts them.
	effects *os.File
}

// Step is called by the tool of a step. It returns the tool's result.
func (m *Meter) Step(session string, step int, effect bool) string {
	if m.OnStep != nil {
		m.OnStep(session, step)
		return result(step)
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times[session] = append(m.times[session], now)
	if len(m.times) == 1 && len(m.times[session]) == 1 {
		close(m.first)
	}
	if effect && m.effects != nil {
		fmt.Fprintln(m.effects, session, step) //nolint:errcheck // a line that is missing is noticed
	}
	return result(step)
}

func result(step int) string { return "57 m, measured at step " + strconv.Itoa(step) }

func newMeter() *Meter { return &Meter{times: map[string][]time.Time{}, first: make(chan struct{})} }

// Result is what one run of a program measured; what its case does not measure is zero.
type Result struct {
	// P50 is the median time between two steps of one session, in microseconds.
	P50 float64 `json:"p50,omitempty"`
	// PerSecond counts the steps of all sessions.
	PerSecond float64 `json:"perSecond,omitempty"`
	// Answer is the time from the answer to the next step, in milliseconds.
	Answer float64 `json:"answer,omitempty"`
	// Lag is the time from the last commit to the last answer, in milliseconds.
	Lag float64 `json:"lag,omitempty"`
	// PeakMB is the largest resident memory of the process.
	PeakMB float64 `json:"peakMB,omitempty"`
}

// Main runs one case in this process and prints its [Result] as JSON.
func Main(open Open) {
	log := fmt.Fprintln
	folder := flag.String("folder", "", "the data folder")
	name := flag.String("case", "", "one, effect, many, memory, answer, wait, spawned or killed")
	sessions := flag.Int("sessions", 1, "how many sessions run at once")
	steps := flag.Int("steps", 1000, "how many steps each has")
	spawned := flag.Int64("spawned", 0, "when this process was started, in nanoseconds since 1970")
	flag.Parse()
	r, err := run(open, *folder, *name, *sessions, *steps, *spawned)
	if err != nil {
		log(os.Stderr, *name, err) //nolint:errcheck // the exit code says it
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func run(open Open, folder, name string, sessions, steps int, spawned int64) (r Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	m := newMeter()
	if name == "killed" {
		m.effects, err = os.OpenFile(filepath.Join(folder, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return r, err
		}
	}
	e, err := open(ctx, folder, m)
	if err != nil {
		return r, err
	}
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = fmt.Sprintf("s%03d", i)
	}
	start := func(p Plan) error {
		for _, id := range ids {
			if err := e.Start(ctx, id, p); err != nil {
				return err
			}
		}
		return nil
	}
	switch name {
	case "wait": // for spawned: leaves a session that waits
		err = start(Plan{Steps: steps, Wait: true})
		if err == nil {
			err = e.Rested(ctx, ids[0])
		}
	case "answer", "spawned":
		began := time.Unix(0, spawned)
		if name == "answer" {
			if err = start(Plan{Steps: steps, Wait: true}); err != nil {
				return r, err
			}
			if err = e.Rested(ctx, ids[0]); err != nil {
				return r, err
			}
			began = time.Now()
		}
		if err = e.Answer(ctx, ids[0]); err != nil {
			return r, err
		}
		<-m.first
		r.Answer = float64(time.Since(began).Microseconds()) / 1e3
		err = e.Finish(ctx, ids)
	case "killed":
		if left, _ := filepath.Glob(filepath.Join(folder, "started")); left == nil {
			if err = start(Plan{Steps: steps, Effect: true}); err != nil {
				return r, err
			}
			if err = os.WriteFile(filepath.Join(folder, "started"), nil, 0o600); err != nil {
				return r, err
			}
		}
		err = e.Finish(ctx, ids)
	default:
		if err = start(Plan{Steps: steps, Effect: name == "effect"}); err != nil {
			return r, err
		}
		if err = e.Finish(ctx, ids); err != nil {
			return r, err
		}
		r.P50, r.PerSecond = m.judge()
		if l, lags := e.(Lagging); lags {
			r.Lag = float64(l.Lag().Microseconds()) / 1e3
		}
	}
	if err != nil {
		return r, err
	}
	err = e.Close()
	r.PeakMB = peak()
	return r, err
}

// judge leaves out the first tenth of the steps, in which caches fill.
func (m *Meter) judge() (p50, perSecond float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all, gaps []time.Duration
	var first time.Time
	for _, times := range m.times {
		if first.IsZero() || times[0].Before(first) {
			first = times[0]
		}
	}
	for _, times := range m.times {
		for i, t := range times {
			all = append(all, t.Sub(first))
			if i > len(times)/10 {
				gaps = append(gaps, t.Sub(times[i-1]))
			}
		}
	}
	slices.Sort(all)
	slices.Sort(gaps)
	from := len(all) / 10
	span := all[len(all)-1] - all[from]
	return float64(gaps[len(gaps)/2].Nanoseconds()) / 1e3, float64(len(all)-1-from) / span.Seconds()
}

func peak() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" { // bytes there, kilobytes on Linux
		usage.Maxrss /= 1024
	}
	return float64(usage.Maxrss) / 1024
}
