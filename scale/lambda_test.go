package main

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/queue"
)

// function is a Lambda function with the mapping that feeds it from a queue: messages
// one by one, as many at once as the mapping has come up to.
type function struct {
	w          *world
	name       string
	queue      *sqs
	most       int
	visibility time.Duration
	all        sync.WaitGroup

	mu      sync.Mutex
	allowed float64 // how many at once: 5 at first, 300 a minute more while all are busy
	busy    int
	since   time.Time
	idle    []warm
	freed   chan struct{}
}

// warm is a process that waits for its next event.
type warm struct {
	*sandbox
	handler lambdafn.Handler
}

func newFunction(w *world, name string, q *sqs, most int, visibility time.Duration) *function {
	return &function{w: w, name: name, queue: q, most: most, visibility: visibility, allowed: mappingFirst, since: time.Now(), freed: make(chan struct{}, 1)}
}

// handler is the program's own, over a process.
func (w *world) handler(function string, s *sandbox) lambdafn.Handler {
	cfg := lambdafn.Config{Runtime: s.r, Queue: w.steps, DeadLetters: w.dead, Now: time.Now}
	build := lambdafn.NewStep
	if function == "sweep" {
		build = lambdafn.NewSweep
	}
	h, err := build(cfg)
	require.NoError(w.t, err)
	return h
}

// poll receives messages and invokes the function until ctx ends.
func (f *function) poll(ctx context.Context) {
	for ctx.Err() == nil {
		if !f.slot() {
			select {
			case <-f.freed:
			case <-time.After(time.Second): // the mapping may come up
			case <-ctx.Done():
			}
			continue
		}
		got, err := f.queue.Receive(ctx, queue.ReceiveParams{Wait: 20 * time.Second, Visibility: f.visibility})
		if err != nil || len(got) == 0 {
			f.free()
			if err != nil && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
			continue
		}
		f.w.report.hop(f.w, got[0])
		f.all.Go(func() {
			defer f.free()
			f.deliver(context.WithoutCancel(ctx), got[0])
		})
	}
}

// slot takes one of the invocations that may run at once.
func (f *function) slot() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.busy >= int(f.allowed)-1 { // all busy: five a second more
		f.allowed = min(f.allowed+mappingRamp*now.Sub(f.since).Minutes(), float64(min(f.most, mappingMost)))
	} else if f.busy < int(f.allowed/2) {
		f.allowed = max(f.allowed-mappingRamp*now.Sub(f.since).Minutes(), mappingFirst)
	}
	f.since = now
	if f.busy >= min(int(f.allowed), f.most) {
		return false
	}
	f.busy++
	f.w.report.busy(f.name, f.busy)
	return true
}

func (f *function) free() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	select {
	case f.freed <- struct{}{}:
	default:
	}
}

// deliver invokes the function with a message, and deletes it when it is done.
func (f *function) deliver(ctx context.Context, d queue.Delivery) {
	time.Sleep(f.w.chance.about(20*time.Millisecond, "hop", d.Wake.ID)) // from the queue to the function
	p := f.take(d)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, sandboxKey{}, p.sandbox), f.timeout())
	answer, err := p.handler.Invoke(ctx, event(f.w, d))
	killed := ctx.Err() != nil
	cancel()
	if p.dead.Load() || killed {
		return // it comes again when its visibility ends
	}
	f.mu.Lock()
	f.idle = append(f.idle, p)
	f.mu.Unlock()
	var failed events.SQSEventResponse
	if err == nil {
		require.NoError(f.w.t, json.Unmarshal(answer, &failed))
	}
	if err != nil || len(failed.BatchItemFailures) > 0 {
		f.w.report.add("messages that came again", 1)
		return
	}
	_ = f.queue.Acknowledge(context.WithoutCancel(ctx), d) // or it comes again
}

// take returns a process that waits, or starts one.
func (f *function) take(d queue.Delivery) warm {
	f.mu.Lock()
	if n := len(f.idle); n > 0 {
		p := f.idle[n-1]
		f.idle = f.idle[:n-1]
		f.mu.Unlock()
		return p
	}
	f.mu.Unlock()
	f.w.report.add("cold starts", 1)
	time.Sleep(f.w.chance.about(coldStart, "cold", d.Wake.ID))
	s := f.w.process(f.name)
	return warm{s, f.w.handler(f.name, s)}
}

func (f *function) timeout() time.Duration {
	if f.name == "sweep" {
		return sweepTimeout
	}
	return stepTimeout
}

// event is what Lambda gives to a function of a message.
func event(w *world, d queue.Delivery) []byte {
	body, err := json.Marshal(d.Wake)
	require.NoError(w.t, err)
	raw, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: d.Message, ReceiptHandle: d.Receipt, Body: string(body), EventSource: "aws:sqs",
		Attributes: map[string]string{
			"ApproximateReceiveCount": strconv.Itoa(d.Receives), "SentTimestamp": strconv.FormatInt(d.SentAt.UnixMilli(), 10),
		},
	}}})
	require.NoError(w.t, err)
	return raw
}
