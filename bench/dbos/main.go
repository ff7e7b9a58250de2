// Command dbos does the work with DBOS Transact for Go on SQLite, with fsync on every commit.
//
// Its own setting is synchronous=NORMAL, which may lose the last commits when the power
// fails; the others do not, so this one is not measured with it either.
package main

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // the driver

	"github.com/adjourn/adjourn/bench/work"
)

func main() { work.Main(open) }

type engine struct {
	ctx dbos.Context
	db  *sql.DB
	m   *work.Meter
}

// waits is the event with which a workflow says that it waits for its answer.
const waits = "waits"

func open(ctx context.Context, folder string, m *work.Meter) (work.Engine, error) {
	// The settings of dbos/internal/sysdb, but for synchronous.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "dbos.db")+
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	e := &engine{db: db, m: m}
	e.ctx, err = dbos.NewContext(ctx, dbos.Config{
		AppName: "bench", SQLiteSystemDB: db, ApplicationVersion: "1", ExecutorID: "one", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(e.ctx, e.session, dbos.WithWorkflowName("session"), dbos.WithMaxRecoveryAttempts(1000))
	return e, dbos.Launch(e.ctx)
}

// made is what a step leaves: the model's reply and the tool's result.
type made struct {
	Reply  string `json:"reply"`
	Result string `json:"result"`
}

func (e *engine) session(ctx dbos.Context, p work.Plan) (string, error) {
	id, err := dbos.GetWorkflowID(ctx)
	if err != nil {
		return "", err
	}
	if p.Wait {
		if err := dbos.SetEvent(ctx, waits, true); err != nil {
			return "", err
		}
		if _, err := dbos.Recv[string](ctx, "answers", time.Hour); err != nil {
			return "", err
		}
	}
	for step := range p.Steps {
		_, err := dbos.RunAsStep(ctx, func(context.Context) (made, error) {
			return made{work.Reply, e.m.Step(id, step, p.Effect)}, nil
		}, dbos.WithStepName("step"))
		if err != nil {
			return "", err
		}
	}
	return "done", nil
}

func (e *engine) Start(_ context.Context, id string, p work.Plan) error {
	_, err := dbos.RunWorkflow(e.ctx, e.session, p, dbos.WithWorkflowID(id))
	return err
}

func (e *engine) Finish(_ context.Context, ids []string) error {
	for _, id := range ids {
		handle, err := dbos.RetrieveWorkflow[string](e.ctx, id)
		if err != nil {
			return err
		}
		if _, err := handle.GetResult(dbos.WithHandlePollingInterval(10 * time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) Rested(_ context.Context, id string) error {
	_, err := dbos.GetEvent[bool](e.ctx, id, waits, time.Minute)
	return err
}

func (e *engine) Answer(_ context.Context, id string) error {
	return dbos.Send(e.ctx, id, "yes", "answers")
}

func (e *engine) Close() error {
	dbos.Shutdown(e.ctx, time.Second) //nolint:errcheck // all has ended
	return e.db.Close()
}
