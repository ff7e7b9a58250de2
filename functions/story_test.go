//go:build aws && linux

package functions_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/internal/lambdatest"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// counting are settings for tests that count: no machine is so slow that a message
// comes back, a lease lapses or a watcher looks while its step is still at work.
func counting(env map[string]string) settings {
	return settings{noSweep: true, visibility: 5 * time.Minute, lease: time.Minute, env: env}
}

// TestStory is what a user sees: a session of 25 steps and more over the HTTP
// API, chained through the queue, that waits for an approval. Between the
// suspension and the answer nothing runs and nothing is queued.
func TestStory(t *testing.T) {
	t.Parallel()
	w := deploy(t, counting(nil))
	try(t, w, "story", nil, func(t *trial) {
		s := &labtest.Script{}
		for range 12 {
			s.Add(s.Echo())
		}
		s.Add(s.Deploy("deploy"))
		for range 12 {
			s.Add(s.Once())
		}
		d := t.add(s)
		d.start(moment(t))
		d.rests(t.patient())
		t.settle()
		before := t.invocations(names...)
		require.Equal(t, 1, t.invocations("start"))
		t.counts(t.began, "step", 13, "one invocation a step")
		time.Sleep(3 * time.Second)
		require.Equal(t, before, t.invocations(names...), "no function runs while a person is waited for")
		n, err := t.queued()
		require.NoError(t, err)
		require.Zero(t, n, "the queue is empty while a person is waited for")

		stands, err := d.client.Session(moment(t), d.key.ID, 0)
		require.NoError(t, err)
		require.Equal(t, session.StatusSuspended, stands.Status)
		require.Len(t, stands.Pause.Pending, 1)
		yes := true
		got, err := d.client.Submit(moment(t), client.SubmitParams{SessionID: d.key.ID, Answer: client.SubmitRequest{
			Kind: session.AnswerApproval, ToolCallID: stands.Pause.Pending[0].CallID, ApprovalID: stands.Pause.Pending[0].ApprovalID, Approved: &yes,
		}})
		require.NoError(t, err)
		require.Equal(t, client.ContinuationResumed, got.Continuation)
		d.ends(t.patient())
		d.told[stands.Pause.Pending[0].WaitID] = got.Answer
		t.settle()
		d.check()
		t.checkNothingLeft()
		t.counts(t.began, "step", 26+1, "26 steps, and the last message's look")
	})
}

// counts holds how often a function was invoked. A message whose send was answered
// too late since then was sent again, and may have brought an invocation more.
func (t *trial) counts(since time.Time, function string, want int, what string) {
	if got := t.invocations(function); t.stalled(since, attempt) {
		require.GreaterOrEqual(t, got, want, what)
	} else {
		require.Equal(t, want, got, what)
	}
}

// TestStrangers: what the gateway lets in sees its own tenant's sessions alone.
func TestStrangers(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{})
	try(t, w, "strangers", nil, func(t *trial) {
		s := labtest.Fixed("deploy")
		d := t.add(s)
		d.start(moment(t))
		stranger := t.client(t, "stranger")
		_, err := stranger.Session(moment(t), d.key.ID, 0)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 404, refused.Status)
		none, err := client.New(client.Config{URL: t.server.URL})
		require.NoError(t, err)
		_, err = none.Session(moment(t), d.key.ID, 0)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 401, refused.Status)
		t.run()
	})
}

// TestStandstill: a machine that stands still while a call is under way makes its
// outcome unknown, as a worker's death does; what a trial forgives then is that alone.
func TestStandstill(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{})
	try(t, w, "standstill", nil, func(t *trial) {
		s := &labtest.Script{}
		s.Add(s.Line())
		d := t.add(s)
		stood := false
		t.functions["step"].SetFaults(func(p *lambdatest.Passage) lambdatest.Fate {
			if stood || p.Half != lambdatest.After || !ledger(p) {
				return lambdatest.Fate{}
			}
			stood = true                                                     // by nobody's doing: it does not count as struck
			return lambdatest.Fate{Deed: lambdatest.Freeze, For: 10 * lease} // the message is back after two
		})
		t.run()
		require.Zero(t, t.Struck())
		require.Equal(t, 1, d.unknown)
	})
}

// TestRequests counts what a plain step asks of AWS: one query, one update, one
// put, one send, early and late in a session alike. Receiving and deleting the
// message is the mapping's.
func TestRequests(t *testing.T) {
	const long = 1000
	s := counting(map[string]string{"ADJOURN_STEPS_PER_INVOCATION": "100"})
	s.concurrency = 1
	w := deploy(t, s)
	try(t, w, "requests", nil, func(t *trial) {
		one := t.environment("step")
		one["ADJOURN_STEPS_PER_INVOCATION"] = "1"
		step := t.functions["step"]
		plain := func(since time.Time, from, to int) {
			want := []string{"dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem", "sqs:SendMessage"}
			for i, invocation := range step.Invocations()[from:to] {
				if t.stalled(since, attempt) && (invocation.Took() >= attempt || !slices.Contains(invocation.Requests(), "dynamodb:PutItem")) {
					continue // what was answered too late was asked again, or sent again
				}
				require.Equal(t, want, slices.Sorted(slices.Values(invocation.Requests())), "invocation %d", from+i+1)
			}
		}
		traffic := func(what string, from map[string]int64, steps int) map[string]int64 {
			now := map[string]int64{}
			for name, x := range step.Traffic() {
				now[name+" sent"], now[name+" received"] = x.Sent, x.Received
			}
			for _, name := range slices.Sorted(maps.Keys(now)) {
				if from != nil {
					t.Note("%s: %s: %d bytes a step", what, name, (now[name]-from[name])/int64(steps))
				}
			}
			return now
		}

		// Early: one step a message.
		require.NoError(t, step.Deploy(binary(outer(t), "step"), one))
		early := &labtest.Script{}
		for range 12 {
			early.Add(early.Echo())
		}
		d := t.add(early)
		before := traffic("early", nil, 1)
		d.start(moment(t))
		d.rests(t.patient())
		traffic("early", before, 13)
		t.settle()
		t.counts(t.began, "step", 13, "one invocation a step")
		plain(t.began, 1, len(step.Invocations())-1) // the first one is cold, the last one ends the task

		// Late: a thousand steps in large bites, a rest, then one step a message again.
		require.NoError(t, step.Deploy(binary(outer(t), "step"), t.environment("step")))
		late := &labtest.Script{}
		late.Repeat(long, late.Echo())
		late.Add(late.Deploy("deploy"))
		for range 12 {
			late.Add(late.Echo())
		}
		d = t.add(late)
		d.start(moment(t))
		d.rests(t.patient())
		t.settle()
		require.NoError(t, step.Deploy(binary(outer(t), "step"), one))
		stands, err := d.client.Session(moment(t), d.key.ID, 0)
		require.NoError(t, err)
		require.EqualValues(t, long+1, stands.Step)
		from, since := t.invocations("step"), time.Now()
		d.answer(moment(t), stands)
		d.ends(t.patient())
		t.settle()
		t.counts(since, "step", from+14, "one invocation a step")
		plain(since, from+2, t.invocations("step")-1) // the first resumes, cold; the second closes the approved call
		for _, d := range t.sessions {
			d.check()
		}
		outer(t).Logf("what was measured:\n%s", t.Notes("bytes a step"))
	})
}
