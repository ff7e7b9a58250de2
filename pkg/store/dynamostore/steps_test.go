//go:build aws

package dynamostore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

const resultBytes = 2048

// TestPlainStep holds the budget of a plain step: a plain ReadOnly step is one
// query, one update, one put and one send, and writes what it adds and little
// more, at step 10 and at step 1,000 alike.
func TestPlainStep(t *testing.T) {
	t.Parallel()
	c, m := metered(t)
	c.start(fmt.Sprintf("- repeat: 1100\n  call: echo\n  with: {size: %d}\n- say: done\n", resultBytes))
	done := int64(0)
	at := func(step int64) usage {
		for ; done < step-1; done++ {
			require.True(t, c.deliverOne())
		}
		sends := c.queue.sends.Load()
		used := m.measure(func() { require.True(t, c.deliverOne()) })
		done++
		require.Equal(t, step+1, c.version(), "entry 1 is the start")
		require.EqualValues(t, 1, c.queue.sends.Load()-sends)
		require.Equal(t, map[string]int{"Query": 1, "UpdateItem": 1, "PutItem": 1}, used.requests)
		return used
	}
	tenth := at(10)
	thousandth := at(1000)
	t.Logf("step 10: %+v; step 1,000: %+v", tenth, thousandth)
	require.InDelta(t, tenth.bytes, thousandth.bytes, 40, "longer numbers and nothing else")
	require.LessOrEqual(t, thousandth.bytes, resultBytes+600)
	require.Zero(t, thousandth.indexWrites)
	require.InDelta(t, 1, thousandth.reads, 0)
	require.LessOrEqual(t, thousandth.writes, 1+3, "HEAD and the entry")
}

// version is the seq of the newest entry.
func (c *chain) version() int64 {
	c.t.Helper()
	s, err := c.Session(c.t.Context(), c.key)
	require.NoError(c.t, err)
	return s.Version
}

// TestPlainStepOnTheWire counts the same where the SDK hands it to the network.
func TestPlainStepOnTheWire(t *testing.T) {
	t.Parallel()
	w := &wire{requests: map[string]int{}}
	f := newFixture(t, func(cfg *dynamostore.Config) {
		client := dynamodb.NewFromConfig(awsConfig(), func(o *dynamodb.Options) {
			o.BaseEndpoint, o.HTTPClient = endpoint(t, "ADJOURN_TEST_DYNAMODB"), w
		})
		cfg.DynamoDB = client
	})
	c := newChain(t, f.store)
	c.start(`[{repeat: 40, call: echo, with: {size: 100}}, {say: done}]`)
	var first int64
	for range 30 {
		w.reset()
		require.True(t, c.deliverOne())
		require.Equal(t, map[string]int{"Query": 1, "UpdateItem": 1, "PutItem": 1}, w.requests)
		if first == 0 {
			first = w.bytes
		}
		require.InDelta(t, first, w.bytes, 80)
	}
	require.NotZero(t, first)
}

// A decision is one conditional write, of one approval a plain one.
func TestDecisionRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls string
		write string
	}{
		"one":     {`{call: deploy, with: {service: web}}`, "UpdateItem"},
		"several": {`{call: deploy, with: {service: web}}, {call: deploy, with: {service: api}}, {call: deploy, with: {service: db}}`, "TransactWriteItems"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on, m := metered(t)
			on.start(`[{calls: [` + c.calls + `]}, {say: done}]`)
			deliver(on)
			shown, err := on.Session(t.Context(), on.key)
			require.NoError(t, err)
			used := m.measure(func() {
				_, err := on.Decide(t.Context(), runtime.DecideParams{Key: on.key, Checkpoint: shown.Checkpoint().String(), ApproveAll: true, Caller: person})
				require.NoError(t, err)
			})
			// HEAD, the waits of its suspension and the entries from its checkpoint on; after
			// the write HEAD and those waits again, and what follows from them.
			require.Equal(t, map[string]int{"GetItem": 2, "Query": 4, c.write: 1}, used.requests)
		})
	}
}

// move is one kind of move of a session: what leads up to it, and itself.
type move struct {
	name   string
	script string
	before func(c *chain)
	do     func(c *chain)
}

func deliver(c *chain) { require.True(c.t, c.deliverOne()) }

func nothing(*chain) {}

func answerFirst(c *chain) { c.answer(c.openWaits()[0], false) }

func then(all ...func(c *chain)) func(c *chain) {
	return func(c *chain) {
		for _, do := range all {
			do(c)
		}
	}
}

// moves are what a bill is made of. DIR is a folder for what tools do.
func moves(dir string) []move {
	const deploy = `[{call: deploy, with: {service: web}}, {say: done}]`
	echo := fmt.Sprintf("[{repeat: 5, call: echo, with: {size: %d}}, {say: done}]", resultBytes)
	line := fmt.Sprintf("[{repeat: 5, call: append_line, with: {path: %q, text: x}}, {say: done}]", dir+"/lines")
	once := fmt.Sprintf("[{repeat: 5, call: append_once, with: {path: %q, text: x}}, {say: done}]", dir+"/once")
	return []move{
		{"start", echo, nil, nil},
		{"ReadOnly step", echo, then(deliver, deliver), deliver},
		{"Idempotent step", once, then(deliver, deliver), deliver},
		{"SideEffect step", line, then(deliver, deliver), deliver},
		{"suspend", deploy, nothing, deliver},
		{"answer", deploy, deliver, answerFirst},
		{"resume", deploy, then(deliver, answerFirst), deliver},
		{"finish", `[{say: done}]`, nothing, deliver},
	}
}

// BenchmarkMoves prints what moves cost: requests, units and bytes for each, and
// dollars for a million of them, DynamoDB and SQS, without Lambda and S3.
func BenchmarkMoves(b *testing.B) {
	for _, mv := range moves(b.TempDir()) {
		b.Run(mv.name, func(b *testing.B) {
			c, m := metered(b)
			var sum usage
			sends := int64(0)
			b.ResetTimer()
			for i := range b.N {
				c.key = session.Key{Tenant: key.Tenant, ID: fmt.Sprintf("00000000-0000-0000-0000-%012d", i)}
				do := mv.do
				if do == nil {
					do = func(c *chain) { c.start(mv.script) }
				} else {
					c.start(mv.script)
					mv.before(c)
				}
				c.now.Add(int64(time.Second)) // what is listed by time moves
				sent := c.queue.sends.Load()
				used := m.measure(func() { do(c) })
				sends += c.queue.sends.Load() - sent
				c.settleAll()
				sum.add(used)
			}
			sum.report(b, sends)
		})
	}
}

// settleAll empties the queue for the next session.
func (c *chain) settleAll() {
	for c.deliverOne() {
	}
}

// BenchmarkColdRead is what a worker that has nothing in its cache reads.
func BenchmarkColdRead(b *testing.B) {
	for _, steps := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			c, m := metered(b)
			c.start(fmt.Sprintf("[{repeat: %d, call: echo, with: {size: %d}}, {say: done}]", steps, resultBytes))
			c.settleAll()
			var sum usage
			b.ResetTimer()
			for range b.N {
				sum.add(m.measure(func() {
					for _, err := range c.store.Entries(b.Context(), key, 0) {
						require.NoError(b, err)
					}
				}))
			}
			sum.report(b, 0)
		})
	}
}

func (u *usage) add(other usage) {
	if u.requests == nil {
		u.requests = map[string]int{}
	}
	for op, n := range other.requests {
		u.requests[op] += n
	}
	u.writes, u.indexWrites, u.reads, u.bytes = u.writes+other.writes, u.indexWrites+other.indexWrites, u.reads+other.reads, u.bytes+other.bytes
}

// report prints the sum of b.N moves as the bill of one, and of a million.
func (u *usage) report(b *testing.B, sends int64) {
	b.Helper()
	n := float64(b.N)
	b.ReportMetric(float64(u.all())/n, "requests")
	b.ReportMetric(float64(u.writes)/n, "WRU")
	b.ReportMetric(float64(u.indexWrites)/n, "index-WRU")
	b.ReportMetric(u.reads/n, "RRU")
	b.ReportMetric(float64(u.bytes)/n, "bytes")
	b.ReportMetric(float64(sends)/n, "sends")
	b.ReportMetric((float64(u.writes+u.indexWrites)*priceWrite+u.reads*priceRead+float64(sends)*priceMessage)/n, "$/million")
}
