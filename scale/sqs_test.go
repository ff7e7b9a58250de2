package main

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// sqsConfig says what a standard queue of SQS is like.
type sqsConfig struct {
	// maxReceives before a message goes to the dead letters; 0 means never.
	maxReceives int
	deadLetters *sqs
	// inFlight is the most messages that may be received and not yet deleted.
	inFlight int
	// fair serves tenants first that have little in flight; off, the oldest message is
	// always next.
	fair bool
	// latency of each request, what becomes of it, and whether a message that is
	// received or deleted comes once more; nil is none, well and never.
	latency func(op string) time.Duration
	fault   func(ctx context.Context, op string) error
	again   func(op string) bool
}

// sqs is a standard queue: at least once, in no order to rely on, fair by message group.
type sqs struct {
	cfg sqsConfig

	mu      sync.Mutex
	groups  map[string]*group
	order   []*group // as they came
	hidden  hidden
	held    map[string]*message // by receipt
	flying  int
	visible int
	names   int
	changed chan struct{}
	// counts of what happened.
	sends, receives, deletes, dead, deepest int
}

// group is what there is of one MessageGroupId.
type group struct {
	waiting []*message
	flying  int
}

type message struct {
	wake     journal.Wake
	group    *group
	name     string // the same at every receipt
	sentAt   time.Time
	readyAt  time.Time // when it may be received
	delayed  bool      // not yet received at all
	receives int
	receipt  string
	at       int // in hidden
}

var _ queue.Queue = (*sqs)(nil)

func newSQS(cfg sqsConfig) *sqs {
	cfg.inFlight = cmp.Or(cfg.inFlight, sqsInFlight)
	return &sqs{cfg: cfg, groups: map[string]*group{}, held: map[string]*message{}, changed: make(chan struct{})}
}

// request takes the time of a request and fails as it does.
func (q *sqs) request(ctx context.Context, op string) error {
	if q.cfg.latency != nil {
		time.Sleep(q.cfg.latency(op))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if q.cfg.fault != nil {
		return q.cfg.fault(ctx, op)
	}
	return nil
}

func (q *sqs) Send(ctx context.Context, wakes ...journal.Wake) error {
	for _, w := range wakes {
		if w.Delay > sqsDelay {
			continue // the sweep sends when its time has come
		}
		err := q.request(ctx, "send")
		if lost := (afterError{}); errors.As(err, &lost) {
			q.put(w)
		}
		if err != nil {
			return fmt.Errorf("send wake for entry %d of session %s: %w", w.Seq, w.Key(), err)
		}
		q.put(w)
	}
	return nil
}

func (q *sqs) put(w journal.Wake) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sends++
	g := q.groups[w.Tenant]
	if g == nil {
		g = &group{}
		q.groups[w.Tenant], q.order = g, append(q.order, g)
	}
	now := time.Now()
	m := &message{wake: w, name: "message-" + strconv.Itoa(q.sends), group: g, sentAt: now, readyAt: now.Add(w.Delay)}
	m.wake.Delay = 0
	if w.Delay > 0 {
		m.delayed = true
		heap.Push(&q.hidden, m)
	} else {
		q.show(m)
	}
	q.tell()
}

func (q *sqs) show(m *message) {
	m.group.waiting = append(m.group.waiting, m)
	q.visible++
	q.deepest = max(q.deepest, q.visible)
}

// tell wakes whoever waits for a message.
func (q *sqs) tell() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *sqs) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	p.Max = cmp.Or(p.Max, 1)
	switch {
	case p.Max < 1 || p.Max > 64:
		return nil, fmt.Errorf("receive: max %d: use 1 to 64", p.Max)
	case p.Visibility <= 0:
		return nil, fmt.Errorf("receive: visibility %v: it must be more than nothing", p.Visibility)
	}
	until := time.Now().Add(p.Wait)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if q.cfg.fault != nil {
			if err := q.cfg.fault(ctx, "receive"); err != nil {
				return nil, err
			}
		}
		got, soonest, changed := q.take(p)
		left := time.Until(until)
		if len(got) > 0 || left <= 0 {
			return got, nil
		}
		wait := time.NewTimer(min(left, soonest))
		select {
		case <-changed:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
	}
}

// take receives what may be received now, or says when something may.
func (q *sqs) take(p queue.ReceiveParams) ([]queue.Delivery, time.Duration, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for len(q.hidden) > 0 && !q.hidden[0].readyAt.After(now) {
		m := heap.Pop(&q.hidden).(*message)
		q.landed(m)
		q.show(m)
	}
	var got []queue.Delivery
	for len(got) < p.Max && q.flying < q.cfg.inFlight {
		m := q.pick()
		if m == nil {
			break
		}
		m.receives++
		if q.cfg.maxReceives > 0 && m.receives > q.cfg.maxReceives {
			q.dead++
			if q.cfg.deadLetters != nil {
				q.cfg.deadLetters.put(m.wake)
			}
			continue
		}
		q.names++
		q.receives++
		m.receipt, m.delayed = strconv.Itoa(q.names), false
		q.held[m.receipt] = m
		q.flying++
		m.group.flying++
		m.readyAt = now.Add(p.Visibility)
		if q.cfg.again != nil && q.cfg.again("receive") {
			m.readyAt = now.Add(time.Second) // another server knows nothing of this receipt
		}
		heap.Push(&q.hidden, m)
		got = append(got, queue.Delivery{Wake: m.wake, Message: m.name, Receipt: m.receipt, Receives: m.receives, SentAt: m.sentAt})
	}
	soonest := time.Hour
	if len(q.hidden) > 0 {
		soonest = q.hidden[0].readyAt.Sub(now)
	}
	return got, soonest, q.changed
}

// landed ends the flight of a message that is no longer hidden.
func (q *sqs) landed(m *message) {
	if !m.delayed {
		q.flying--
		m.group.flying--
		delete(q.held, m.receipt)
	}
	m.delayed = false
}

// pick takes the next message: the oldest of the groups that have little in flight,
// then the oldest of all. A group is noisy with 30 messages and a tenth of what is in
// flight (Amazon SQS developer guide, "How Amazon SQS fair queues work").
func (q *sqs) pick() *message {
	var next, noisy *group
	for _, g := range q.order {
		if len(g.waiting) == 0 {
			continue
		}
		of := &next
		if q.cfg.fair && g.flying >= sqsNoisy && g.flying*10 > q.flying {
			of = &noisy
		}
		if *of == nil || g.waiting[0].readyAt.Before((*of).waiting[0].readyAt) {
			*of = g
		}
	}
	if next == nil {
		next = noisy
	}
	if next == nil {
		return nil
	}
	m := next.waiting[0]
	next.waiting = next.waiting[1:]
	q.visible--
	return m
}

func (q *sqs) Acknowledge(ctx context.Context, deliveries ...queue.Delivery) error {
	for _, d := range deliveries {
		if err := q.request(ctx, "delete"); err != nil {
			return fmt.Errorf("acknowledge wake for entry %d of session %s: %w", d.Wake.Seq, d.Wake.Key(), err)
		}
		q.mu.Lock()
		m := q.held[d.Receipt]
		if m != nil && (q.cfg.again == nil || !q.cfg.again("delete")) {
			heap.Remove(&q.hidden, m.at)
			q.landed(m)
			q.deletes++
			q.tell()
		}
		q.mu.Unlock()
	}
	return nil
}

func (q *sqs) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) error {
	if err := q.request(ctx, "postpone"); err != nil {
		return fmt.Errorf("postpone wake for entry %d of session %s: %w", d.Wake.Seq, d.Wake.Key(), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if m := q.held[d.Receipt]; m != nil {
		m.readyAt = time.Now().Add(delay)
		heap.Fix(&q.hidden, m.at)
		q.tell()
	}
	return nil
}

// waits is how many messages there are that nobody works on, and how many in all.
func (q *sqs) waits() (visible, all int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.visible, q.visible + len(q.hidden)
}

// hidden are the messages that nobody may receive now, the next one first.
type hidden []*message

func (h hidden) Len() int           { return len(h) }
func (h hidden) Less(i, j int) bool { return h[i].readyAt.Before(h[j].readyAt) }
func (h hidden) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].at, h[j].at = i, j }

// Push adds a message, for container/heap.
func (h *hidden) Push(x any) {
	m := x.(*message)
	m.at = len(*h)
	*h = append(*h, m)
}

// Pop takes the last message, for container/heap.
func (h *hidden) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}

// afterError is a failure of a request that was carried out.
type afterError struct{ error }

func (e afterError) Unwrap() error { return e.error }
