// Command door does the work with Adjourn through the command dev: its server on a loopback address,
// its worker and its log, in this process, with a caller for each session who waits for its end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/adjourn/adjourn/bench/work"
	"github.com/adjourn/adjourn/bench/worker"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func main() { work.Main(open) }

const (
	// longest is how long the server is asked to wait; it waits less by itself.
	longest = 20 * time.Second
	// callers may be connected at once and stay so.
	callers = 1000
)

type engine struct {
	client *client.Client
	last   *commits
	runs   sync.WaitGroup
	mu     sync.Mutex
	err    error
	stop   context.CancelFunc
	served chan error
}

func open(ctx context.Context, folder string, m *work.Meter) (work.Engine, error) {
	ctx, stop := context.WithCancel(ctx)
	e := &engine{last: &commits{}, stop: stop, served: make(chan error, 1)}
	forgets, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // what a terminal would take
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	go func() {
		code := cli.Run(ctx, cli.Config{
			Registry: worker.Registry(m), Program: "bench", Stdout: in, Stderr: forgets, Who: "bench", Env: func(string) string { return "" },
			Args:     []string{"dev", "--addr", "127.0.0.1:0", "--data", filepath.Join(folder, "adjourn.db"), "--concurrency", "64", "--output", "json"},
			Decorate: func(p app.Parts) app.Parts { p.Store = metered{Store: p.Store, last: e.last}; return p },
		})
		ended := fmt.Errorf("dev ended with %d", code)
		e.served <- ended
		_ = in.CloseWithError(ended)
		_ = forgets.Close()
	}()
	var at struct{ URL, TokenFile string }
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // nothing follows
	token, err := os.ReadFile(at.TokenFile)
	if err != nil {
		return nil, err
	}
	e.client, err = client.New(client.Config{
		URL: at.URL, Token: strings.TrimSpace(string(token)),
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers, ReadBufferSize: 2 << 10, WriteBufferSize: 2 << 10}},
	})
	return e, err
}

func (e *engine) Start(ctx context.Context, id string, p work.Plan) error {
	e.runs.Go(func() {
		if err := e.startAndWait(ctx, id, p); err != nil {
			e.mu.Lock()
			e.err = errors.Join(e.err, err)
			e.mu.Unlock()
		}
	})
	return nil
}

func (e *engine) startAndWait(ctx context.Context, id string, p work.Plan) error {
	started, err := e.client.Start(ctx, client.StartParams{
		Request: client.StartRequest{SessionID: id, Agent: worker.Agent, Input: client.Text(worker.Input(id, p))}, Wait: longest,
	})
	if err != nil || started.Session != nil && rests(started.Session.Status) {
		return err
	}
	for {
		s, err := e.client.Session(ctx, id, longest)
		if err != nil || rests(s.Status) {
			return err
		}
	}
}

func rests(s session.Status) bool { return s.Ended() || s == session.StatusSuspended }

func (e *engine) Finish(context.Context, []string) error {
	e.runs.Wait()
	e.last.answered(time.Now())
	return e.err
}

func (e *engine) Rested(context.Context, string) error { e.runs.Wait(); return e.err }

func (e *engine) Answer(ctx context.Context, id string) error {
	_, err := e.client.Resume(ctx, client.ResumeParams{SessionID: id, Request: client.ResumeRequest{Message: client.Text("Yes.")}, Wait: longest})
	return err
}

// Lag is the time from the last commit to the last answer.
func (e *engine) Lag() time.Duration { return e.last.lag() }

func (e *engine) Close() error {
	e.stop()
	<-e.served
	return nil
}

// commits remembers when the last one was on disk, and when all callers had their answers.
type commits struct {
	mu     sync.Mutex
	at     time.Time
	behind time.Duration
}

func (c *commits) committed(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = now
}

func (c *commits) answered(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind = now.Sub(c.at)
}

func (c *commits) lag() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behind
}

// metered tells when its commits are on disk, and is otherwise the store that it is made of.
type metered struct {
	store.Store
	last *commits
}

func (s metered) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	committed, err := s.Store.Commit(ctx, p)
	s.last.committed(time.Now())
	return committed, err
}

func (s metered) Watch(changed func()) (stop func(), ok bool) {
	if w, can := s.Store.(store.Watcher); can {
		return w.Watch(changed)
	}
	return nil, false
}
