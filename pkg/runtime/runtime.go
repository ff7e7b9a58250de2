package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/away"
	"github.com/adjourn/adjourn/pkg/runtime/internal/control"
	"github.com/adjourn/adjourn/pkg/runtime/internal/drive"
	"github.com/adjourn/adjourn/pkg/runtime/internal/halts"
	"github.com/adjourn/adjourn/pkg/runtime/internal/logged"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/runtime/internal/sweep"
	"github.com/adjourn/adjourn/pkg/runtime/internal/worker"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// DefaultToolsAtOnce is how many tools of a step run side by side.
const DefaultToolsAtOnce = 16

// Config wires a runtime. Registry, Store, Queue, Owner, Now and NewID are required.
type Config struct {
	Registry *agent.Registry
	Store    store.Store
	// Queue receives the wakes; DeadLetters holds those that were received too often.
	Queue       queue.Queue
	DeadLetters queue.Queue
	// Env is the environment models are opened with.
	Env agent.Env
	// OpenAtStart opens the agent's model before a start is stored, and refuses the start
	// if that fails: otherwise the task fails at its first reply, and its session id is
	// used up. Not for a program that only starts: it may lack the keys of those that work.
	OpenAtStart bool
	// Files says where tools may have files; zero: nowhere.
	Files tool.Files
	// ToolPolicy holds every task that begins here, beside what its caller asks for. It alone may let
	// calls run without the approval that their tool asks for, and only where the tool says so.
	ToolPolicy *session.ToolPolicy
	// Owner names this worker in leases.
	Owner string
	Now   func() time.Time
	// NewID returns 96 random bits in base64url.
	NewID func() string

	// Lease is how long a claim lasts (20 s); it is renewed every RenewEvery (5 s).
	Lease      time.Duration
	RenewEvery time.Duration
	// WatchEvery is how often a working step looks for signals (500 ms).
	WatchEvery time.Duration
	// Grace is how long an entry counts as young (3 s): its writer may still be sending.
	Grace time.Duration
	// SweepAfter is how long a running session may have no recent entry and no live lease before
	// the sweep sends for it (one and a half leases, 30 s). If it were shorter, the lease might
	// still be live; if it were longer, a stopped worker would delay others although its lease
	// has ended.
	SweepAfter time.Duration
	// LookTimeout bounds how long the sweep is at one item of what is due (5 s), so
	// that one the store is silent about hides no other.
	LookTimeout time.Duration
	// SweepAtOnce is how many items the sweep looks at side by side (1): of each it may
	// hold an entry.
	SweepAtOnce int
	// SendOnGo has [Runtime.Go] look at all that is due, as a sweep does, and send at once.
	SendOnGo bool
	// CommitTimeout bounds a commit once its effect is done (10 s).
	CommitTimeout time.Duration
	// ToolGrace is how long a tool may take to return after its context is done (5 s);
	// then the step goes on without it and its outcome is unknown.
	ToolGrace time.Duration
	// StepsPerInvocation is how many steps one message may drive (1).
	StepsPerInvocation int
	// MaxClaims is how many claims of one step may die before the dead letters'
	// consumer fails the task (5).
	MaxClaims int64
	// CacheBytes is about how much memory the folded sessions may take that are
	// kept (256 MiB); those at work come on top.
	CacheBytes int
	// StepBytes bounds what one entry keeps of a step in sum: the results of its
	// calls, their changes of the state, events and questions, and beside them a
	// reply of at most a quarter of it (32 MiB, which is also the most). What is over
	// becomes an error result that says so. The answers of one suspension go into one
	// entry too: each may have the same share of it.
	StepBytes int
	// ToolsAtOnce is how many tools of a step run side by side ([DefaultToolsAtOnce]): each may bring
	// up to [tool.MaxResultBytes].
	ToolsAtOnce int

	Log *slog.Logger
	// OnEntry is called with each entry this process commits, OnDelta with what models stream.
	// Both are called on the worker's goroutine and must return at once.
	OnEntry func(session.Key, Progress)
	OnDelta func(session.Key, llm.Event)
	// OnWait is told once of each wait whose answer an entry of this process has taken in, or that it has
	// closed, on the goroutine of who committed it. The log has the same in a line "wait over".
	OnWait func(session.Key, journal.WaitOver)
	// OnHalt is told each time a session is found that does no step because of a halt.
	OnHalt func(session.Key, session.Halt)
}

// Runtime carries out the verbs. Its methods are safe for concurrent use.
type Runtime struct {
	cfg Config
	// sessions as they are stored.
	sessions *stored.Sessions
	// answers checks what callers say.
	answers *answers.Checker
	// worker does what delivered messages ask for.
	worker *worker.Worker
	// control stops tasks, halts all steps.
	control *control.Control
	halts   *halts.Halts
	// away says who stands in for whom.
	away *away.Away
	// sweep repairs what crashes have left.
	sweep *sweep.Sweep
	// driver takes messages from queues for the worker.
	driver *drive.Driver
}

// New checks the configuration and fills in the defaults.
func New(cfg Config) (*Runtime, error) {
	var missing []error
	need := func(ok bool, name string) {
		if !ok {
			missing = append(missing, fmt.Errorf("runtime: %s is required", name))
		}
	}
	need(cfg.Registry != nil, "Registry")
	need(cfg.Store != nil, "Store")
	need(cfg.Queue != nil, "Queue")
	need(cfg.Owner != "", "Owner")
	need(cfg.Now != nil, "Now")
	need(cfg.NewID != nil, "NewID")
	if err := cfg.ToolPolicy.Validate(); err != nil {
		missing = append(missing, fmt.Errorf("runtime: ToolPolicy: %w", err))
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	defaultTo(&cfg.Lease, 20*time.Second)
	defaultTo(&cfg.RenewEvery, cfg.Lease/4)
	defaultTo(&cfg.WatchEvery, 500*time.Millisecond)
	defaultTo(&cfg.Grace, 3*time.Second)
	defaultTo(&cfg.SweepAfter, cfg.Lease*3/2)
	defaultTo(&cfg.LookTimeout, 5*time.Second)
	defaultTo(&cfg.SweepAtOnce, 1)
	defaultTo(&cfg.CommitTimeout, 10*time.Second)
	defaultTo(&cfg.ToolGrace, 5*time.Second)
	defaultTo(&cfg.StepsPerInvocation, 1)
	defaultTo(&cfg.MaxClaims, 5)
	defaultTo(&cfg.CacheBytes, 256<<20)
	defaultTo(&cfg.StepBytes, worker.MaxStepBytes)
	cfg.StepBytes = min(cfg.StepBytes, worker.MaxStepBytes)
	defaultTo(&cfg.ToolsAtOnce, DefaultToolsAtOnce)
	if cfg.Env == nil {
		cfg.Env = func(string) string { return "" }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	logged.PolicyInVain(cfg.Log, cfg.Registry, cfg.ToolPolicy)
	sessions := stored.New(stored.Config{
		Store: cfg.Store, Queue: cfg.Queue, Now: cfg.Now, CacheBytes: cfg.CacheBytes,
		CommitTimeout: cfg.CommitTimeout, SweepAfter: cfg.SweepAfter, OnEntry: cfg.onEntry(), OnWait: cfg.waitOver,
	})
	halt := halts.New(halts.Config{Store: cfg.Store, Registry: cfg.Registry, Now: cfg.Now, OnHalt: cfg.OnHalt})
	absent := away.New(away.Config{Store: cfg.Store, Now: cfg.Now})
	checker := answers.New(answers.Config{Sessions: sessions, Away: absent, Store: cfg.Store, Registry: cfg.Registry, Now: cfg.Now, StepBytes: cfg.StepBytes, Log: cfg.Log})
	work := worker.New(worker.Config{
		Sessions: sessions, Halts: halt, Store: cfg.Store, Registry: cfg.Registry, Env: cfg.Env, Files: cfg.Files,
		Owner: cfg.Owner, Now: cfg.Now, NewID: cfg.NewID,
		Lease: cfg.Lease, RenewEvery: cfg.RenewEvery, WatchEvery: cfg.WatchEvery, Grace: cfg.Grace, ToolGrace: cfg.ToolGrace,
		StepsPerInvocation: cfg.StepsPerInvocation, MaxClaims: cfg.MaxClaims, StepBytes: cfg.StepBytes, ToolsAtOnce: cfg.ToolsAtOnce,
		Log: cfg.Log, OnDelta: cfg.OnDelta,
	})
	r := &Runtime{cfg: cfg, sessions: sessions, answers: checker, worker: work, halts: halt, away: absent}
	r.control = control.New(control.Config{
		Sessions: sessions, Worker: work, Away: absent, Now: cfg.Now, NewID: cfg.NewID, StepBytes: cfg.StepBytes, Rules: r.rules, HasEffects: r.hasEffects,
	})
	r.sweep = sweep.New(sweep.Config{
		Sessions: sessions, Halts: halt, Expire: r.control.Expire, Cancel: r.control.StopAtDeadline, Store: cfg.Store, Now: cfg.Now, Lease: cfg.Lease, After: cfg.SweepAfter,
		LookTimeout: cfg.LookTimeout, AtOnce: cfg.SweepAtOnce, Log: cfg.Log,
	})
	r.driver = drive.New(drive.Config{Sessions: sessions, Worker: work, Sweep: r.sweep, Halts: halt, DeadLetters: cfg.DeadLetters, Log: cfg.Log})
	return r, nil
}

func defaultTo[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// stamp returns the stamp of a verb.
func (r *Runtime) stamp(c Caller) engine.Stamp {
	return engine.Stamp{Now: r.cfg.Now(), By: c.Who, From: c.From, Attempt: session.Attempt{ID: r.cfg.NewID()}, Token: r.cfg.NewID()}
}
