//go:build aws && linux

package functions_test

import (
	"archive/zip"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// The budgets. How long a start takes is printed and not
// held: it is the machine's affair as well.
const (
	maxZip = 10_000_000
	// text/template looks methods up by name, for which the linker keeps every exported
	// method of every type. These functions alone execute templates: event, and query and submit,
	// whose page of a link is one; any other that came to link them would be over maxZip.
	maxTemplateZip = 12_000_000
	// maxMemory is what a function of 128 MB has, less what Lambda keeps for itself.
	maxMemory = 112 << 20
)

func TestSize_of_each_function(t *testing.T) {
	for _, arch := range []string{"arm64", "amd64"} {
		for _, name := range names {
			dir := t.TempDir()
			program := filepath.Join(dir, "bootstrap")
			build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", program, "./"+name)
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
			raw, err := os.Stat(program)
			require.NoError(t, err)
			zipped := zipOf(t, program)
			t.Logf("%-6s %-6s %6.2f MB zipped, %6.2f MB raw", arch, name, float64(zipped)/1e6, float64(raw.Size())/1e6)
			limit := maxZip
			if slices.Contains([]string{"event", "query", "submit"}, name) {
				limit = maxTemplateZip
			}
			require.Less(t, zipped, int64(limit), "%s for %s", name, arch)
		}
	}
}

func zipOf(t *testing.T, program string) int64 {
	t.Helper()
	in, err := os.Open(program)
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	out, err := os.Create(program + ".zip")
	require.NoError(t, err)
	z := zip.NewWriter(out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	w, err := z.Create("bootstrap")
	require.NoError(t, err)
	_, err = io.Copy(w, in)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, out.Close())
	info, err := os.Stat(program + ".zip")
	require.NoError(t, err)
	return info.Size()
}

// TestSize_starts measures from the start of a process to its first request for an event.
func TestSize_starts(t *testing.T) {
	const starts = 15
	asked := make(chan time.Time)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- time.Now()
		<-r.Context().Done() // there is no event: the process waits until it is ended
	}))
	t.Cleanup(server.Close)
	for _, name := range names {
		var took []time.Duration
		for range starts {
			command := exec.CommandContext(t.Context(), binary(t, name))
			command.Env = []string{
				"AWS_LAMBDA_RUNTIME_API=" + server.Listener.Addr().String(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=s",
				"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128", "ADJOURN_TABLE=state", "ADJOURN_BUCKET=blobs", "ADJOURN_QUEUE_URL=https://sqs/1/steps", "ADJOURN_DEAD_LETTERS_URL=https://sqs/1/dead", "ADJOURN_API_ID=a1",
			}
			began := time.Now()
			require.NoError(t, command.Start())
			select {
			case at := <-asked:
				took = append(took, at.Sub(began))
			case <-time.After(time.Minute):
				t.Fatalf("%s asks for no event", name)
			}
			_ = command.Process.Kill()
			_ = command.Wait()
		}
		slices.Sort(took)
		t.Logf("%-6s first /next after %5.1f ms at best, %5.1f ms at the median of %d starts (design: under 30 ms)",
			name, milliseconds(took[0]), milliseconds(took[starts/2]), starts)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// TestSize_of_memory works on a session of 1 MB in functions of 128 MB: first by one
// process that grows with the session, then by a fresh one that reads it whole.
func TestSize_of_memory(t *testing.T) {
	w := deploy(t, settings{env: map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128"}, lease: time.Minute, concurrency: 1, noSweep: true})
	c := w.client(t, "memory")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{
		Agent: "lab", Input: client.Text("- {repeat: 64, call: echo, with: {size: 16384}}\n- call: deploy\n  with: {service: shop}\n- say: done"),
	}})
	require.NoError(t, err, w.output())
	s := rested(ctx, t, c, started.SessionID)
	require.Equal(t, session.StatusSuspended, s.Status, w.output())
	grown := peakOf(t, w)

	for _, worker := range w.functions["step"].Workers() {
		worker.Kill()
	}
	pending := s.Pause.Pending[0]
	yes := true
	_, err = c.Submit(ctx, client.SubmitParams{SessionID: s.ID, Answer: client.SubmitRequest{
		Kind: session.AnswerApproval, WaitID: pending.WaitID, ApprovalID: pending.ApprovalID, ToolCallID: pending.CallID, Approved: &yes,
	}})
	require.NoError(t, err)
	s = rested(ctx, t, c, s.ID)
	require.Equal(t, session.StatusCompleted, s.Status, w.output())
	fresh := peakOf(t, w)

	size := 0
	for message, err := range c.AllMessages(ctx, s.ID) {
		require.NoError(t, err)
		for _, part := range message.Parts {
			if part.ToolResult != nil {
				size += len(part.ToolResult.Output)
			}
		}
	}
	require.GreaterOrEqual(t, size, 1<<20)
	t.Logf("step on a session of %.2f MB: at most %.1f MB while it grew, %.1f MB in a process that read it whole",
		float64(size)/1e6, float64(grown)/1e6, float64(fresh)/1e6)
	require.Less(t, grown, int64(maxMemory))
	require.Less(t, fresh, int64(maxMemory))
}

// TestSize_of_memory_of_many works on 60 sessions of 1 MB, one after the other, in
// one process of 128 MB: what it keeps between events has a bound.
func TestSize_of_memory_of_many(t *testing.T) {
	w := deploy(t, settings{env: map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128"}, lease: time.Minute, concurrency: 1, noSweep: true})
	c := w.client(t, "memory")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const sessions = 60
	for range sessions {
		started, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{Agent: "lab", Input: client.Text("- {call: echo, with: {size: 1048576}}\n- say: done")}})
		require.NoError(t, err, w.output())
		require.Equal(t, session.StatusCompleted, rested(ctx, t, c, started.SessionID).Status, w.output())
	}
	peak := peakOf(t, w)
	t.Logf("step after %d sessions of 1 MB: at most %.1f MB", sessions, float64(peak)/1e6)
	require.Less(t, peak, int64(maxMemory))
}

// TestSize_of_memory_of_the_sweep is about a session with results of 90 MB that
// waits: for its model, which put it off, for somebody who lets a deadline pass, and
// for a resumption that is lost. The sweep, whose function is small, finds all that
// and looks at where the session stands, no further.
func TestSize_of_memory_of_the_sweep(t *testing.T) {
	w := deploy(t, settings{
		binary: "expiring", env: map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024"}, concurrency: 1, timeout: 30 * time.Second, visibility: 5 * time.Second,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	started, err := w.client(t, "memory").Start(ctx, client.StartParams{Request: client.StartRequest{
		Agent: "lab", Input: client.Text("- {repeat: 30, call: echo, with: {size: 3000000}}\n- {fail: rate_limited, after: 5s}\n- {call: release, with: {service: shop}}\n- say: done"),
	}})
	require.NoError(t, err, w.output())
	key := session.Key{Tenant: "memory", ID: started.SessionID}
	lost := func(m types.Message) []time.Duration {
		if strings.Contains(*m.Body, string(journal.WakeResume)) {
			return nil
		}
		return []time.Duration{0}
	}
	w.setDeliveries(lost)
	sent := func() int { return w.functions["sweep"].Traffic()["sqs:SendMessage"].Requests }
	reaches := func(status session.Status) {
		require.Eventually(t, func() bool {
			for head, err := range w.store.Items(ctx, key, store.KindHead, "") {
				return err == nil && head.Head.Status == status
			}
			return false
		}, 4*time.Minute, 100*time.Millisecond, "%s\n%s", status, w.output())
	}
	reaches(session.StatusSuspended)
	before := sent()
	t.Logf("sweep over a session of 90 MB that runs: at most %.1f MB", float64(peakIn(t, w, "sweep"))/1e6)
	require.Eventually(t, func() bool { return sent() >= before+2 }, time.Minute, 100*time.Millisecond, "the deadline's resumption, and once more")
	w.setDeliveries(nil)
	reaches(session.StatusCompleted)
	peak := peakIn(t, w, "sweep")
	t.Logf("and that waited: at most %.1f MB", float64(peak)/1e6)
	require.Less(t, peak, int64(maxMemory))
}

func rested(ctx context.Context, t *testing.T, c *client.Client, id string) client.Session {
	t.Helper()
	for {
		s, err := c.Session(ctx, id, 5*time.Second)
		require.NoError(t, err)
		if s.Status != session.StatusRunning && s.Outcome != session.OutcomeRunning {
			return s
		}
	}
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakOf is the most memory any living process of the step function has had, in bytes.
func peakOf(t *testing.T, w *world) int64 {
	t.Helper()
	return peakIn(t, w, "step")
}

func peakIn(t *testing.T, w *world, function string) int64 {
	t.Helper()
	var most int64
	for _, worker := range w.functions[function].Workers() {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", worker.PID()))
		require.NoError(t, err)
		found := highWater.FindSubmatch(status)
		require.NotNil(t, found, "%s", status)
		kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
		require.NoError(t, err)
		most = max(most, kilobytes<<10)
	}
	require.Positive(t, most)
	return most
}
