//go:build aws && linux

package functions_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/internal/lambdatest"
	"github.com/adjourn/adjourn/pkg/session"
)

// patience is how long a session may take before a trial gives up on it. Only a
// hang uses it up.
const patience = 10 * time.Minute

// trial is what happens in a world until some sessions have ended. Its methods
// stop the goroutine they are called on when something is wrong, as those of
// testing.T do.
type trial struct {
	labtest.Trial
	t *testing.T
	*world
	rng      *rand.Rand
	sessions []*drive
	began    time.Time
}

// add gives the trial a session with a script, of a tenant of its own.
func (t *trial) add(s *labtest.Script) *drive {
	n := len(t.sessions) + 1
	d := &drive{
		trial: t, key: session.Key{Tenant: fmt.Sprintf("tenant-%d", n), ID: fmt.Sprintf("%s-%d", t.Name, n)}, script: s,
		dir: filepath.Join(t.Dir, fmt.Sprint(n)), ambiguous: map[string]bool{}, told: map[string]session.Answer{},
	}
	if t.rng != nil {
		d.rng = rand.New(rand.NewPCG(t.rng.Uint64(), 1))
		d.impatient = d.chance(2) == 0
	}
	require.NoError(t, os.Mkdir(d.dir, 0o700))
	d.script.Prepare(d.dir)
	d.client = t.client(t, d.key.Tenant)
	t.sessions = append(t.sessions, d)
	return d
}

// run drives every session to its end, side by side, and checks what is left.
func (t *trial) run() {
	var wg sync.WaitGroup
	for _, d := range t.sessions {
		wg.Go(func() {
			// In a goroutine of its own, which a fault may end.
			done := make(chan struct{})
			go func() { defer close(done); d.drive() }()
			<-done
		})
	}
	wg.Wait()
	t.setFaults(nil)
	t.setDeliveries(nil)
	if t.Failed() {
		t.FailNow()
	}
	t.settle()
	for _, d := range t.sessions {
		d.check()
	}
	t.checkNothingLeft()
}

// settle waits until the queue and its dead letters are empty.
func (t *trial) settle() {
	quiet := 0
	for deadline := time.Now().Add(patience); quiet < 2; time.Sleep(20 * time.Millisecond) {
		n, err := t.queued()
		require.NoError(t, err)
		if n > 0 {
			quiet = 0
			require.True(t, time.Now().Before(deadline), "%d messages are left in the queue", n)
			continue
		}
		quiet++
	}
}

// try runs one trial in a world and tells all about it if it fails.
func try(t *testing.T, w *world, name string, rng *rand.Rand, do func(t *trial)) *trial {
	t.Helper()
	one := &trial{Trial: labtest.Trial{Name: name}, t: t, world: w, rng: rng, began: time.Now()}
	one.Try(t, func() {
		w.report(one.Note)
		defer func() { w.report(nil); w.setFaults(nil); w.setDeliveries(nil) }()
		do(one)
	}, one.report)
	return one
}

// stalled reports whether the machine may have stood still for as long as d, in a
// function or in what it asked: an invocation that began since then took so long.
func (t *trial) stalled(since time.Time, d time.Duration) bool {
	for _, f := range t.functions {
		for _, i := range f.Invocations() {
			took := i.Took()
			if took == 0 {
				took = time.Since(i.Began)
			}
			if took >= d && i.Began.After(since) {
				return true
			}
		}
	}
	return false
}

// report tells all that is known of a trial; what is long goes to its folder.
func (t *trial) report() string {
	var b strings.Builder
	for _, d := range t.sessions {
		fmt.Fprintf(&b, "-- %s\n%s%s\n", d.key, d.script.Report(), d.journal())
	}
	fmt.Fprintf(&b, "-- what was done\n%s\n", t.Notes(""))
	whole := b.String() + "-- output\n" + t.output()
	path := filepath.Join(t.Dir, "report.txt")
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		return whole
	}
	if len(b.String()) > 20_000 {
		return b.String()[:20_000] + "\n… the rest is in " + path
	}
	return b.String() + "the functions' output is in " + path
}

// all runs trials side by side, each world one trial after the other.
func all(t *testing.T, worlds, trials int, s settings, one func(w *world, n int)) {
	t.Helper()
	next, done := make(chan int), make(chan struct{})
	var wg sync.WaitGroup
	for range min(worlds, trials) {
		wg.Go(func() {
			select {
			case seats <- struct{}{}:
				defer func() { <-seats }()
			case <-done:
				return // the others have done all there was
			}
			w, end := open(t, s)
			defer end()
			for n := range next {
				one(w, n)
			}
		})
	}
	gone := make(chan struct{})
	go func() { wg.Wait(); close(gone) }()
	for n := range trials {
		if t.Failed() {
			break // one report is read, twenty are not
		}
		select {
		case next <- n:
		case <-gone: // no world could be opened
		}
	}
	close(next)
	close(done)
	wg.Wait()
}

// place says where a fault strikes: at the n-th passage that matches, from 1.
type place struct {
	function string
	half     lambdatest.Half
	matches  func(*lambdatest.Passage) bool
	n        int
}

// at strikes once, at a place.
func (t *trial) at(p place, fate lambdatest.Fate) {
	var mu sync.Mutex
	seen := 0
	t.functions[p.function].SetFaults(func(passage *lambdatest.Passage) lambdatest.Fate {
		if passage.Half != p.half || !p.matches(passage) {
			return lambdatest.Fate{}
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen != max(p.n, 1) {
			return lambdatest.Fate{}
		}
		t.Hit()
		return fate
	})
}

// op matches requests of some operations whose body holds a text.
func op(text string, operations ...string) func(*lambdatest.Passage) bool {
	return func(p *lambdatest.Passage) bool {
		return slices.Contains(operations, p.Operation) && strings.Contains(string(p.Body), text)
	}
}

// background is the context of what outlives a test's end.
var background = context.Background()

// moment is a context for what takes a moment: only a hang uses it up.
func moment(t *trial) context.Context { return t.within(time.Minute) }

// patient is a context for what takes a while.
func (t *trial) patient() context.Context { return t.within(patience) }

func (t *trial) within(d time.Duration) context.Context {
	ctx, stop := context.WithTimeout(background, d)
	time.AfterFunc(d, stop)
	return ctx
}

// outer is the test a trial is of.
func outer(t *trial) *testing.T { return t.t }
