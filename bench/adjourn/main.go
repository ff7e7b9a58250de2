// Command adjourn does the work with Adjourn: the engine of a data file, in this process.
package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/adjourn/adjourn/bench/work"
	"github.com/adjourn/adjourn/bench/worker"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

func main() { work.Main(open) }

type engine struct {
	app    *embedded.App
	stop   context.CancelFunc
	worked chan error
}

func open(ctx context.Context, folder string, m *work.Meter) (work.Engine, error) {
	app, err := embedded.Open(ctx, embedded.Config{Registry: worker.Registry(m), Data: filepath.Join(folder, "adjourn.db")})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	e := &engine{app: app, stop: stop, worked: make(chan error, 1)}
	go func() {
		e.worked <- app.Runtime.Work(ctx, app.Queue(), runtime.WorkParams{Concurrency: 64, SweepEvery: time.Second})
	}()
	return e, nil
}

func key(id string) session.Key { return session.Key{Tenant: session.DefaultTenant, ID: id} }

func (e *engine) Start(ctx context.Context, id string, p work.Plan) error {
	_, err := e.app.Runtime.Start(ctx, runtime.StartParams{Key: key(id), Agent: worker.Agent, Input: llm.TextParts(worker.Input(id, p))})
	return err
}

func (e *engine) Finish(ctx context.Context, ids []string) error {
	for _, id := range ids {
		for ended := false; !ended; {
			// Past what it rested at, if it is about to go on after an answer.
			head, err := e.app.Runtime.Head(ctx, key(id))
			if err != nil {
				return err
			}
			if ended = head.Status.Ended(); ended {
				break
			}
			if _, err := e.app.Runtime.AwaitRest(ctx, key(id), head.StatusSeq, 20*time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *engine) Rested(ctx context.Context, id string) error {
	_, err := e.app.Runtime.AwaitRest(ctx, key(id), 0, 20*time.Second)
	return err
}

func (e *engine) Answer(ctx context.Context, id string) error {
	_, err := e.app.Runtime.Submit(ctx, runtime.SubmitParams{
		Key: key(id), Answer: session.Answer{Kind: session.AnswerMessage, Message: llm.TextParts("Yes.")},
		Caller: runtime.Caller{Who: "bench", From: "bench"},
	})
	return err
}

func (e *engine) Close() error {
	e.stop()
	<-e.worked
	return e.app.Close()
}
