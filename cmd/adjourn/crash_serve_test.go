//go:build linux

package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
)

// TestKillServer kills adjourn dev in the middle of a step while somebody waits on
// the other end of its HTTP API, and starts it again: nothing is lost, and who
// asked again, or only waited long enough, is told what came of it.
func TestKillServer(t *testing.T) {
	t.Parallel()
	places := []string{
		"Commit-1-before", "Commit-1-after", "Model-1-after", "Commit-2-after", "Tool-1-after", "Update-2-after",
		"Tool-2-before", "Model-3-after", "Commit-4-before", "Update-5-after", "Commit-5-after", "Tool-3-after",
	}
	if labtest.Number(t, "ADJOURN_CRASH_TRIALS", 0) == 0 {
		places = []string{"Commit-1-after", "Tool-1-after", "Commit-4-before", "Tool-3-after"}
	}
	var reached, again atomic.Int64
	worlds := make([]*world, len(places))
	at := map[*world]string{}
	for i, place := range places {
		worlds[i] = trapWorld(t, "server killed at "+place, "deploy")
		at[worlds[i]] = place
	}
	all(t, 4, worlds, func(w *world) {
		s := &served{w: w, addr: freeAddress(w)}
		s.process = w.startTrapped(at[w], "KILL", s.args()...)
		s.await()
		for _, p := range story() {
			again.Add(int64(s.ask(p)))
			require.Equal(w, p.after, w.stands())
		}
		s.process.signal(syscall.SIGINT)
		if r := s.process.wait(); r.killed() && w.Struck() == 0 {
			w.Hit() // its caller was told the end before it was killed
		} else {
			require.Zero(w, r.code, "a server that is told to stop stops cleanly")
		}
		reached.Add(int64(w.Struck()))
		w.finish(story())
		w.check()
	})
	t.Logf("%d places, %d of them reached, %d commands asked again", len(places), reached.Load(), again.Load())
	require.Greater(t, int(reached.Load()), len(places)*3/4, "most places are reached")
}

// served is a server of a trial, started again when it was killed.
type served struct {
	w       *world
	addr    string
	process *process
}

// freeAddress is one that nobody listens on, so that a server that comes back is
// found where it was. Its host is one that nobody else gets a free port of, who
// might be given this one as long as the server is away.
func freeAddress(w *world) string {
	var lc net.ListenConfig
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	listener, err := lc.Listen(context.Background(), "tcp", host+":0")
	require.NoError(w, err)
	defer func() { require.NoError(w, listener.Close()) }()
	return listener.Addr().String()
}

func (s *served) args() []string {
	return []string{"dev", "--lab", "--addr", s.addr, "--output", "json"}
}

// await waits until the server says where it is, or has ended.
func (s *served) await() {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-s.process.ended:
			return
		default:
		}
		if text, err := os.ReadFile(s.process.stdout.Name()); err == nil && len(text) > 0 {
			return
		}
	}
	s.w.Errorf("the server does not say where it is")
}

// ask carries out a phase over HTTP, while the server may be killed and comes
// back. It returns how often the command had to be given again.
func (s *served) ask(p phase) (again int) {
	w := s.w
	for {
		client := w.start(nil, append([]string{"--url", "http://" + s.addr, "--token-file", w.path("adjourn.db.token")}, p.args...)...)
		select {
		case <-client.ended:
		case <-s.process.ended:
			require.True(w, s.process.wait().killed(), "the server ended by itself")
			w.Hit()
			s.process = w.start(nil, s.args()...)
			s.await()
		}
		r := client.wait()
		if r.code == p.code {
			return again
		}
		// It had no answer, and what it asked for cannot be repeated unseen.
		require.Equal(w, 1, r.code)
		require.Contains(w, r.stderr, "cannot be reached")
		again++
		require.Less(w, again, 5)
	}
}
