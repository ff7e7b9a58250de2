// Command floor writes what a step of Adjourn stores straight into SQLite: no engine is faster.
//
// One transaction a step, with fsync: an entry, the HEAD of its session, the message that was
// received out and the next one in.
package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver

	"github.com/adjourn/adjourn/bench/work"
)

func main() { work.Main(open) }

type engine struct {
	db *sql.DB
	m  *work.Meter
	// One transaction takes in what has come, as any engine with one writer can.
	steps chan chan error
	runs  sync.WaitGroup
	err   error
}

func open(ctx context.Context, folder string, m *work.Meter) (work.Engine, error) {
	db, err := sql.Open("sqlite", filepath.Join(folder, "floor.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, at TEXT, payload BLOB);
		CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, visible INTEGER, session TEXT, seq INTEGER);
		CREATE INDEX IF NOT EXISTS visible ON messages (visible);`)
	return &engine{db: db, m: m}, err
}

func (e *engine) Start(ctx context.Context, session string, p work.Plan) error {
	if e.steps == nil {
		e.steps = make(chan chan error, 64)
		go e.write(context.WithoutCancel(ctx))
	}
	e.runs.Go(func() {
		for step := range p.Steps {
			e.m.Step(session, step, p.Effect)
			done := make(chan error, 1)
			e.steps <- done
			if err := <-done; err != nil {
				e.err = err
				return
			}
		}
	})
	return nil
}

func (e *engine) write(ctx context.Context) {
	for done := range e.steps {
		batch := []chan error{done}
		for more := true; more; {
			select {
			case done := <-e.steps:
				batch = append(batch, done)
			default:
				more = false
			}
		}
		err := e.transact(ctx, len(batch))
		for _, done := range batch {
			done <- err
		}
	}
}

func (e *engine) transact(ctx context.Context, steps int) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	for range steps {
		r, err := tx.ExecContext(ctx, "INSERT INTO entries (at, payload) VALUES (?, ?)", "2026-11-23T00:00:00.000Z", work.Reply)
		if err != nil {
			return err
		}
		id, _ := r.LastInsertId()
		if _, err := tx.ExecContext(ctx, "DELETE FROM messages WHERE id=?", id-1); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO messages (id, visible, session, seq) VALUES (?, ?, ?, ?)", id, id, "s", id); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (e *engine) Finish(context.Context, []string) error { e.runs.Wait(); return e.err }

func (e *engine) Rested(context.Context, string) error { return nil }

func (e *engine) Answer(ctx context.Context, session string) error {
	return e.Start(ctx, session, work.Plan{Steps: 1})
}

func (e *engine) Close() error { return e.db.Close() }
