// Command door does the work with Adjourn through the command dev: its server on a loopback address,
// its worker and its log, in this process. A second process has a caller for each session, who waits
// for its end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
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

func main() {
	if url := os.Getenv(urlVariable); url != "" {
		if err := callers(url, os.Getenv(tokenVariable)); err != nil {
			fmt.Fprintln(os.Stderr, "callers:", err)
			os.Exit(1)
		}
		return
	}
	debug.SetGCPercent(80) // as cli.Main has it for a command that goes on
	work.Main(open)
}

const (
	// longest is how long the server is asked to wait; it waits less by itself.
	longest = 20 * time.Second
	// callersMost may be connected at once and stay so.
	callersMost = 1000
	// The callers' process is told by these variables where dev is.
	urlVariable, tokenVariable = "BENCH_URL", "BENCH_TOKEN"
)

type engine struct {
	client  *client.Client
	last    *commits
	callers *json.Encoder
	runs    sync.WaitGroup
	mu      sync.Mutex
	err     error
	stop    context.CancelFunc
	served  chan error
}

// order tells the callers' process to start a session; answer is what it says of that.
type order struct {
	ID   string
	Plan work.Plan
}

type answer struct {
	At  time.Time
	Err string
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
	if e.client, err = newClient(at.URL, strings.TrimSpace(string(token))); err != nil {
		return nil, err
	}
	return e, e.call(ctx, at.URL, strings.TrimSpace(string(token)))
}

func newClient(url, token string) (*client.Client, error) {
	return client.New(client.Config{
		URL: url, Token: token,
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callersMost, ReadBufferSize: 2 << 10, WriteBufferSize: 2 << 10}},
	})
}

// call starts the callers' process.
func (e *engine) call(ctx context.Context, url, token string) error {
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), urlVariable+"="+url, tokenVariable+"="+token), os.Stderr
	orders, err := child.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	e.callers = json.NewEncoder(orders)
	go func() {
		for answered := json.NewDecoder(answers); ; e.runs.Done() {
			var a answer
			if answered.Decode(&a) != nil {
				return
			}
			e.last.answered(a.At)
			if a.Err != "" {
				e.mu.Lock()
				e.err = errors.Join(e.err, errors.New(a.Err))
				e.mu.Unlock()
			}
		}
	}()
	return child.Start()
}

// callers is the second process: it carries out the orders that it reads, all at once.
func callers(url, token string) error {
	c, err := newClient(url, token)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	answers := json.NewEncoder(os.Stdout)
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		go func() {
			a := answer{}
			if err := startAndWait(context.Background(), c, o.ID, o.Plan); err != nil {
				a.Err = err.Error()
			}
			a.At = time.Now()
			mu.Lock()
			defer mu.Unlock()
			answers.Encode(a) //nolint:errcheck // who reads it is gone
		}()
	}
}

func (e *engine) Start(_ context.Context, id string, p work.Plan) error {
	e.runs.Add(1)
	return e.callers.Encode(order{id, p})
}

func startAndWait(ctx context.Context, c *client.Client, id string, p work.Plan) error {
	started, err := c.Start(ctx, client.StartParams{
		Request: client.StartRequest{SessionID: id, Agent: worker.Agent, Input: client.Text(worker.Input(id, p))}, Wait: longest,
	})
	if err != nil || started.Session != nil && rests(started.Session.Status) {
		return err
	}
	for {
		s, err := c.Session(ctx, id, longest)
		if err != nil || rests(s.Status) {
			return err
		}
	}
}

func rests(s session.Status) bool { return s.Ended() || s == session.StatusSuspended }

func (e *engine) Finish(context.Context, []string) error {
	e.runs.Wait()
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
	mu       sync.Mutex
	at, last time.Time
}

func (c *commits) committed(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = now
}

func (c *commits) answered(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = at
}

func (c *commits) lag() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.Sub(c.at)
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
