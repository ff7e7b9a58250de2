// Command river does the work with River on SQLite: a step is a job that inserts the next one.
//
// River is a queue of jobs, not a durable execution: what a session has said so far would be
// its user's own table. Its fetches are as often as it allows.
package main

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver

	"github.com/adjourn/adjourn/bench/work"
)

func main() { work.Main(open) }

type engine struct {
	db     *sql.DB
	client *river.Client[*sql.Tx]
	m      *work.Meter
	stop   context.CancelFunc

	mu    sync.Mutex
	ended map[string]chan struct{}
	waits map[string]work.Plan
}

// args are those of a step's job. Reply is the model's, Result the tool's of the step before.
type args struct {
	Session string    `json:"session"`
	Step    int       `json:"step"`
	Plan    work.Plan `json:"plan"`
	Reply   string    `json:"reply"`
	Result  string    `json:"result"`
}

func (args) Kind() string { return "step" }

type worker struct {
	river.WorkerDefaults[args]
	e *engine
}

func open(ctx context.Context, folder string, m *work.Meter) (work.Engine, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "river.db")+
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // as the driver's documentation says
	migrator, err := rivermigrate.New(riversqlite.New(db), nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	e := &engine{db: db, m: m, ended: map[string]chan struct{}{}, waits: map[string]work.Plan{}}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{e: e})
	e.client, err = river.NewClient(riversqlite.New(db), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 64}}, Workers: workers,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	ctx, e.stop = context.WithCancel(ctx)
	return e, e.client.Start(ctx)
}

func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	a := job.Args
	if a.Step >= a.Plan.Steps {
		close(w.e.end(a.Session))
		return nil
	}
	a.Result = w.e.m.Step(a.Session, a.Step, a.Plan.Effect)
	tx, err := w.e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	a.Step++
	if _, err := w.e.client.InsertTx(ctx, tx, a, nil); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riversqlite.Driver](ctx, tx, job); err != nil {
		return err
	}
	return tx.Commit()
}

func (e *engine) end(session string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended[session] == nil {
		e.ended[session] = make(chan struct{})
	}
	return e.ended[session]
}

func (e *engine) Start(ctx context.Context, session string, p work.Plan) error {
	if p.Wait { // nothing waits in a queue: the job comes with the answer
		return nil
	}
	_, err := e.client.Insert(ctx, args{Session: session, Plan: p, Reply: work.Reply}, nil)
	return err
}

func (e *engine) Finish(ctx context.Context, sessions []string) error {
	for _, session := range sessions {
		select {
		case <-e.end(session):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (e *engine) Rested(context.Context, string) error { return nil }

func (e *engine) Answer(ctx context.Context, session string) error {
	return e.Start(ctx, session, work.Plan{Steps: 1})
}

func (e *engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := e.client.Stop(ctx)
	e.stop()
	if err != nil {
		return err
	}
	return e.db.Close()
}
