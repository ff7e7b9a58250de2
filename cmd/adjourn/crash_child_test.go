//go:build linux

package main_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The environment of a child, beside asChild.
const (
	trapAt      = "ADJOURN_CRASH_AT"      // the place where it stops, as place.String writes it
	trapHow     = "ADJOURN_CRASH_HOW"     // KILL or STOP
	trapRecord  = "ADJOURN_CRASH_RECORD"  // a file that gets a line for each place passed
	trapBarrier = "ADJOURN_CRASH_BARRIER" // a folder: wait in it until there is a file go
	trapLate    = "ADJOURN_CRASH_LATE"    // how long to wait after it
	trapAhead   = "ADJOURN_CRASH_AHEAD"   // how far the clock is ahead
)

// place is a point of a command's work: before or after its n-th call of a kind.
type place struct {
	Call string
	N    int
	When string
}

func (p place) String() string { return fmt.Sprintf("%s-%d-%s", p.Call, p.N, p.When) }

// traps counts calls and stops this process at one of them.
type traps struct {
	at, how string
	record  *os.File

	mu     sync.Mutex
	counts map[string]int
}

// pass counts one call and runs it, unless this is the place to stop. The two
// halves of a call share its number, however many run side by side.
func (t *traps) pass(call string, do func()) {
	t.mu.Lock()
	t.counts[call]++
	n := t.counts[call]
	t.mu.Unlock()
	t.reach(place{call, n, "before"})
	do()
	t.reach(place{call, n, "after"})
}

func (t *traps) reach(p place) {
	if t.record != nil {
		if _, err := fmt.Fprintln(t.record, p); err != nil {
			panic(err)
		}
	}
	if p.String() != t.at {
		return
	}
	sig := syscall.SIGKILL
	if t.how == "STOP" {
		sig = syscall.SIGSTOP
		t.quiet()
	}
	// To this very thread, so that it does not go on before the signal has come.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Tgkill(os.Getpid(), syscall.Gettid(), sig); err != nil {
		panic(err)
	}
	if sig == syscall.SIGKILL {
		select {} // the signal is on its way
	}
}

// quiet waits until no transaction of this process is under way. One that is
// stopped in the middle of one keeps everybody out of the file, as SQLite's locks
// are: then there is nobody to take over from it.
func (t *traps) quiet() {
	time.Sleep(5 * time.Millisecond) // what nobody waits for is written a moment later
	db, err := sql.Open("sqlite", os.Getenv("ADJOURN_DATA"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(context.Background(), "PRAGMA busy_timeout=10000; BEGIN IMMEDIATE; ROLLBACK")
	if err != nil {
		panic(err)
	}
}

// child is the program with traps: the real commands, over the real file, with
// a counter around everything a crash may come between.
func child() int {
	t := &traps{at: os.Getenv(trapAt), how: os.Getenv(trapHow), counts: map[string]int{}}
	if path := os.Getenv(trapRecord); path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		t.record = file
	}
	if dir := os.Getenv(trapBarrier); dir != "" {
		late, err := time.ParseDuration(os.Getenv(trapLate))
		if err != nil {
			panic(err)
		}
		awaitGo(dir)
		time.Sleep(late)
	}
	now := time.Now
	if text := os.Getenv(trapAhead); text != "" {
		ahead, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		now = func() time.Time { return time.Now().Add(ahead) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // how a server is told to stop
	defer stop()
	return cli.Run(ctx, cli.Config{
		Registry: t.registry, Program: os.Args[0], Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Who: "ada", Decorate: t.decorate, Now: now,
	})
}

// awaitGo says that this process is ready and waits for the start.
func awaitGo(dir string) {
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("ready-", os.Getpid())), nil, 0o600); err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go")); !errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func (t *traps) decorate(p app.Parts) app.Parts {
	only := p.Only
	p.Store = &trappedStore{p.Store, t}
	p.Queue = &trappedQueue{p.Queue, t, ""}
	p.DeadLetters = &trappedQueue{p.DeadLetters, t, "Dead"}
	p.Only = func(key session.Key) queue.Queue { return &trappedQueue{only(key), t, ""} }
	return p
}

type trappedStore struct {
	store.Store
	t *traps
}

func (s *trappedStore) Claim(ctx context.Context, p store.ClaimParams) (item store.Item, err error) {
	s.t.pass("Claim", func() { item, err = s.Store.Claim(ctx, p) })
	return item, err
}

func (s *trappedStore) Commit(ctx context.Context, p store.CommitParams) (done store.Committed, err error) {
	s.t.pass("Commit", func() { done, err = s.Store.Commit(ctx, p) })
	return done, err
}

func (s *trappedStore) Update(ctx context.Context, key session.Key, items ...store.Item) (stored []store.Item, err error) {
	s.t.pass("Update", func() { stored, err = s.Store.Update(ctx, key, items...) })
	return stored, err
}

type trappedQueue struct {
	queue.Queue
	t    *traps
	name string
}

func (q *trappedQueue) Send(ctx context.Context, wakes ...journal.Wake) (err error) {
	q.t.pass(q.name+"Send", func() { err = q.Queue.Send(ctx, wakes...) })
	return err
}

func (q *trappedQueue) Receive(ctx context.Context, p queue.ReceiveParams) (deliveries []queue.Delivery, err error) {
	q.t.pass(q.name+"Receive", func() { deliveries, err = q.Queue.Receive(ctx, p) })
	return deliveries, err
}

func (q *trappedQueue) Acknowledge(ctx context.Context, deliveries ...queue.Delivery) (err error) {
	q.t.pass(q.name+"Acknowledge", func() { err = q.Queue.Acknowledge(ctx, deliveries...) })
	return err
}

func (q *trappedQueue) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) (err error) {
	q.t.pass(q.name+"Postpone", func() { err = q.Queue.Postpone(ctx, d, delay) })
	return err
}

// trappedModel stops before it answers, or when it has answered and nobody knows yet.
type trappedModel struct {
	llm.Model
	t *traps
}

func (m *trappedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		m.t.pass("Model", func() { m.Model.Stream(ctx, req)(yield) })
	}
}

// expireAfter is the time somebody has to approve a release: more than any machine
// takes until the session rests. Nobody waits for its end (see passDeadline).
const expireAfter = time.Hour

// registry is the lab with traps in those of its tools that change something,
// and with a tool whose approval expires.
func (t *traps) registry() (*agent.Registry, error) {
	open := func(ctx context.Context, name string, env func(string) string) (llm.Model, error) {
		model, err := lab.Open(ctx, name, env)
		return &trappedModel{model, t}, err
	}
	definition := lab.Agent()
	for i, original := range definition.Tools {
		switch name := original.Name(); name {
		case "append_line", "append_once":
			definition.Tools[i] = trapTool[lab.LineIn](t, original, tool.Spec[lab.LineIn]{})
		case "deploy":
			definition.Tools[i] = trapTool(t, original, tool.Spec[lab.DeployIn]{Approve: tool.Always[lab.DeployIn]})
			definition.Tools = append(definition.Tools, trapTool(t, original, tool.Spec[lab.DeployIn]{
				Name: "release", Approve: tool.Always[lab.DeployIn],
				Expiry: &tool.Expiry{After: expireAfter, Outcome: session.ExpireDefault, Value: true},
			}))
		}
	}
	definition.Tools = slices.Clip(definition.Tools)
	return agent.NewRegistry(agent.Config{Models: agent.Models{"scripted": open}, Agents: []agent.Agent{definition}})
}

func trapTool[In any](t *traps, original tool.Tool, spec tool.Spec[In]) tool.Tool {
	if spec.Name == "" {
		spec.Name = original.Name()
	}
	spec.Description, spec.Effect = original.Description(), original.Effect()
	return tool.Define(spec, func(ctx context.Context, c *tool.Call, in In) (out json.RawMessage, err error) {
		args, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		t.pass("Tool", func() { out, err = original.Run(ctx, c, args) })
		return out, err
	})
}
