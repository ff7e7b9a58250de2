//go:build linux

package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Worker is one process of a function, with the sandbox around it.
type Worker struct {
	f       *Function
	id      int
	version int
	cmd     *exec.Cmd
	servers []*http.Server
	output  *output

	// gone is closed when the process has ended.
	gone chan struct{}
	// asked gets a value each time the process asks for work.
	asked chan struct{}
	// work is what it is given then.
	work chan *invocation

	mu      sync.Mutex
	current *invocation
}

// invocation is one event on its way through a process.
type invocation struct {
	record  *Invocation
	payload []byte
	// done gets the answer.
	done chan outcome
}

// outcome is what a function said: a payload, or an error.
type outcome struct {
	payload []byte
	err     *InvokeError
}

// starter starts all processes from one thread that never ends: they are killed
// when that does, which is when the test's own process is gone, however it went.
var starter = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// start starts a process with a Runtime API and a proxy of its own.
func (f *Function) start(id, version int, binary string, env map[string]string) (*Worker, error) {
	w := &Worker{
		f: f, id: id, version: version, output: &output{},
		gone: make(chan struct{}), asked: make(chan struct{}, 1), work: make(chan *invocation),
	}
	api, err := listen()
	if err != nil {
		return nil, err
	}
	aws, err := listen()
	if err != nil {
		_ = api.Close()
		return nil, err
	}
	w.cmd = exec.CommandContext(context.Background(), binary)
	w.cmd.Dir = f.dir
	w.cmd.Env = f.environment(env, api.Addr().String(), "http://"+aws.Addr().String())
	w.cmd.Stdout, w.cmd.Stderr = w.output, w.output
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	starter() <- func() { started <- w.cmd.Start() }
	if err := <-started; err != nil {
		return nil, errors.Join(err, api.Close(), aws.Close())
	}
	w.serve(api, w.runtimeAPI())
	w.serve(aws, proxy{w})
	if f.cfg.LimitMemory {
		go w.limitMemory(memoryOf(w.cmd.Env))
	}
	servers := w.servers
	go func() {
		_ = w.cmd.Wait() // its state says all
		close(w.gone)
		for _, server := range servers {
			_ = server.Close()
		}
	}()
	return w, nil
}

// memoryOf is how many bytes of memory a process with these variables has.
func memoryOf(env []string) int64 {
	for _, variable := range env {
		if text, ok := strings.CutPrefix(variable, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE="); ok {
			megabytes, _ := strconv.ParseInt(text, 10, 32) // none, if it is no number: it is killed at once
			return megabytes << 20
		}
	}
	return 0
}

// limitMemory kills the process when it has taken more than so many bytes.
func (w *Worker) limitMemory(most int64) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-w.gone:
			return
		}
		statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.PID()))
		if err != nil {
			return // it is gone
		}
		var size, resident int64
		if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
			continue
		}
		if taken := resident * int64(os.Getpagesize()); taken > most {
			w.f.cfg.Log("%s #%d: out of memory: %d of %d bytes", w.f.cfg.Name, w.id, taken, most)
			w.Kill()
			return
		}
	}
}

// listen takes a port on loopback.
func listen() (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
}

func (w *Worker) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	w.servers = append(w.servers, server)
	go func() { _ = server.Serve(listener) }() // until it is closed
}

// ended reports whether the process is gone.
func (w *Worker) ended() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// PID of the process.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// ID numbers the processes of a function, from 1.
func (w *Worker) ID() int { return w.id }

// Kill ends the process with SIGKILL and returns when it is gone.
func (w *Worker) Kill() {
	w.signal(syscall.SIGKILL)
	<-w.gone
}

// Freeze stops the process for a time, as a sandbox is stopped.
func (w *Worker) Freeze(d time.Duration) {
	w.signal(syscall.SIGSTOP)
	select {
	case <-time.After(d):
		w.signal(syscall.SIGCONT)
	case <-w.gone:
	}
}

// signal sends a signal; a process that is gone gets none.
func (w *Worker) signal(s syscall.Signal) {
	if err := w.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.f.cfg.Log("%s #%d: signal %s: %v", w.f.cfg.Name, w.id, s, err)
	}
}

// runtimeAPI is the API of the Lambda runtime, version 2018-06-01.
func (w *Worker) runtimeAPI() http.Handler {
	const base = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"invocation/next", w.next)
	mux.HandleFunc("POST "+base+"invocation/{id}/response", func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it died while it was speaking: its end is noticed elsewhere
		}
		w.settle(out, r.PathValue("id"), outcome{payload: body})
	})
	mux.HandleFunc("POST "+base+"invocation/{id}/error", func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.settle(out, r.PathValue("id"), outcome{err: reported(body)})
	})
	mux.HandleFunc("POST "+base+"init/error", func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.f.cfg.Log("%s #%d: init failed: %s", w.f.cfg.Name, w.id, body)
		accept(out)
	})
	return mux
}

// next gives the process its next event. Until there is one the process is
// frozen, so that nothing it left running goes on.
func (w *Worker) next(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.current = nil
	w.mu.Unlock()
	w.signal(syscall.SIGSTOP)
	select {
	case w.asked <- struct{}{}:
	default:
	}
	var inv *invocation
	select {
	case inv = <-w.work:
	case <-w.gone:
		return
	case <-r.Context().Done():
		return
	}
	w.mu.Lock()
	w.current = inv
	w.mu.Unlock()
	w.signal(syscall.SIGCONT)
	header := out.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Lambda-Runtime-Aws-Request-Id", inv.record.ID)
	header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.record.Deadline.UnixMilli(), 10))
	header.Set("Lambda-Runtime-Invoked-Function-Arn", w.f.ARN())
	header.Set("Lambda-Runtime-Trace-Id", fmt.Sprintf("Root=1-%08x-%s;Sampled=0", inv.record.Began.Unix(), strings.ReplaceAll(inv.record.ID, "-", "")[:24]))
	_, _ = out.Write(inv.payload)
}

// settle takes what a process says of the invocation it works on. One that was
// given up by then does not count.
func (w *Worker) settle(out http.ResponseWriter, id string, o outcome) {
	w.mu.Lock()
	inv := w.current
	w.mu.Unlock()
	if inv == nil || inv.record.ID != id {
		out.WriteHeader(http.StatusForbidden)
		return
	}
	select {
	case inv.done <- o:
	default:
	}
	accept(out)
}

func accept(out http.ResponseWriter) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusAccepted)
	_, _ = out.Write([]byte(`{"status":"OK"}`))
}

// passage is the next request of what the process works on.
func (w *Worker) passage(op string, body []byte) *Passage {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &Passage{Function: w.f.cfg.Name, Worker: w.id, Operation: op, Body: body}
	if w.current != nil {
		p.Invocation = w.current.record.ID
		p.N = w.current.record.add(op)
	}
	return p
}

// output keeps the newest part of what a process prints.
type output struct {
	mu   sync.Mutex
	text []byte
}

// kept is how many bytes of output are kept.
const kept = 64 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if len(o.text) > 2*kept {
		o.text = append([]byte(nil), o.text[len(o.text)-kept:]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
