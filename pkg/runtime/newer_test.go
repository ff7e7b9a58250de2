package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// newerStore is that of a program that knows the word quorum, which this one does
// not: what it commits needs it.
type newerStore struct {
	store.Store
	entry, rules, waits bool
}

func (s *newerStore) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	needs := []string{"quorum"}
	if s.entry {
		p.Entry.Needs = needs
	}
	if s.rules && p.Entry.Rules != nil {
		rules := *p.Entry.Rules
		rules.Needs, p.Entry.Rules = needs, &rules
	}
	if s.waits {
		for i := range p.Entry.Waits {
			p.Entry.Waits[i].Needs = needs
		}
		for i, item := range p.Items {
			if item.Kind == store.KindWait && item.Rev == 0 {
				record := *item.Wait
				record.Wait.Needs = needs
				p.Items[i] = store.WaitItem(record, 0)
			}
		}
	}
	return s.Store.Commit(ctx, p)
}

// A program of before meets a running session that needs what it does not know: it
// gives message and lease back, however often, and nobody counts that as dying.
func TestNeeds_of_a_running_session(t *testing.T) {
	t.Parallel()
	for name, newer := range map[string]newerStore{"entry": {entry: true}, "rules": {rules: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
			ctx := context.Background()
			newer.Store = w.store
			w.start(w.process(func(cfg *runtime.Config) { cfg.Store = &newer }), "go")
			wakes := w.drain()
			require.Len(t, wakes, 1)
			before := w.head()
			old := w.process()
			for range 8 {
				_, err := old.Deliver(ctx, wakes[0])
				require.Equal(t, runtime.CodeNewerNeeded, codeOf(err))
				require.ErrorContains(t, err, `needs "quorum"`)
				require.ErrorContains(t, err, "entry 1")
				require.Empty(t, w.head().Head.Lease.Owner, "the lease is given back")
				w.clock.advance(30 * time.Second)
			}
			_, err := old.DeadLetter(ctx, wakes[0])
			require.Equal(t, runtime.CodeNewerNeeded, codeOf(err), "it stays among the dead letters")
			_ = sweepOf(t, old)

			after := w.head()
			require.Equal(t, session.StatusRunning, after.Head.Status)
			require.Equal(t, before.Head.StatusSeq, after.Head.StatusSeq)
			require.NotNil(t, after.Head.Due, "the program that knows it finds it")
			require.Empty(t, made.log, "nothing was done")
			for _, err := range []error{
				errOf(old.Session(ctx, w.key)), errOf(old.Journal(ctx, w.key)), errOf(old.View(ctx, w.key)),
				errOf(old.Start(ctx, startParams(w, "more", ""))),
				errOf(old.Resume(ctx, runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeContinue, Caller: person})),
			} {
				require.Equal(t, runtime.CodeNewerNeeded, codeOf(err))
			}

			other := w.another()
			other.run(other.process(), "go")
			page, err := old.Sessions(ctx, runtime.SessionsParams{Tenant: w.key.Tenant})
			require.NoError(t, err)
			require.Len(t, page.Heads, 2, "both are listed")
			require.Equal(t, session.StatusCompleted, other.session().Status)
		})
	}
}

// A wait that needs what this program does not know is listed as not readable
// beside the others, and is neither answered, approved, expired nor given up from here.
func TestNeeds_of_a_wait(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}))
	ctx := context.Background()
	newer := w.process(func(cfg *runtime.Config) { cfg.Store = &newerStore{Store: w.store, waits: true} })
	w.run(newer, "go")
	other := w.another()
	other.run(other.process(), "go")
	before := w.head()
	require.Equal(t, session.StatusSuspended, before.Head.Status)

	old := w.process()
	inbox, err := old.Inbox(ctx, runtime.InboxParams{Tenant: w.key.Tenant})
	require.NoError(t, err)
	require.Len(t, inbox.Items, 2)
	unread := 0
	for _, item := range inbox.Items {
		require.Equal(t, item.Key == w.key, item.LeftOut)
		if item.LeftOut {
			unread++
			require.Contains(t, string(item.Record.Wait.Arguments), "use a newer adjourn")
		}
	}
	require.Equal(t, 1, unread)

	approve := session.Answer{Wait: "w2-1", Kind: session.AnswerApproval, ApprovalID: "n", Approved: new(bool)}
	for name, err := range map[string]error{
		"submit":  errOf(old.Submit(ctx, runtime.SubmitParams{Key: w.key, Answer: approve, Caller: person})),
		"decide":  errOf(old.Decide(ctx, runtime.DecideParams{Key: w.key, Reject: []string{"w2-1"}, Caller: person})),
		"all":     errOf(old.Decide(ctx, runtime.DecideParams{Key: w.key, RejectAll: true, Caller: person})),
		"resume":  errOf(old.Resume(ctx, runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeContinue, Caller: person})),
		"waits":   errOf(old.Waits(ctx, w.key)),
		"deliver": errOf(old.Deliver(ctx, w.wake(3, journal.WakeResume))),
	} {
		require.Equal(t, runtime.CodeNewerNeeded, codeOf(err), name)
		require.ErrorContains(t, err, `wait w2-1 needs "quorum"`, name)
	}
	w.clock.advance(24 * time.Hour)
	_ = sweepOf(t, old)
	require.Equal(t, before.Rev, w.head().Rev)
	require.Equal(t, session.StatusSuspended, w.head().Head.Status)
	require.Empty(t, made.log)
}

// A wait that is due before its deadline, as a newer program has it that reminds
// people, is not expired by this one.
func TestSweep_leaves_a_wait_that_is_due_before_its_deadline(t *testing.T) {
	t.Parallel()
	for name, deadline := range map[string]time.Duration{"later": 48 * time.Hour, "never": 0} {
		w, p := waiting(t, "approve")
		item := w.items(store.KindWait)[0]
		record := *item.Wait
		due := w.clock.Now().Add(time.Hour)
		record.Due = &due
		if deadline > 0 {
			record.Wait.Deadline = &session.Deadline{At: w.clock.Now().Add(deadline), Outcome: session.ExpireDeny, After: deadline}
		}
		w.update(store.WaitItem(record, item.Rev))
		w.clock.advance(2 * time.Hour)
		require.Zero(t, sweepOf(t, p).Expired, name)
		require.Equal(t, session.WaitOpen, w.items(store.KindWait)[0].Wait.State, name)
		w.clock.advance(deadline)
		require.Equal(t, deadline > 0, sweepOf(t, p).Expired == 1, name)
	}
}

// laterStore is that of a program whose records have a field that this one does not
// know: whatever is written first has it, and must have it when it is written again.
type laterStore struct {
	store.Store
	t         *testing.T
	mu        sync.Mutex
	rewritten map[store.ItemKind]int
}

func (s *laterStore) pass(items []store.Item) []store.Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(items)
	for i, item := range items {
		record, err := item.Record()
		require.NoError(s.t, err)
		if item.Rev > 0 {
			require.Contains(s.t, string(record), "zzNew", "%s %s at revision %d", item.Kind, item.ID, item.Rev)
			s.rewritten[item.Kind]++
			continue
		}
		record = append([]byte(`{"zzNew":{"a":[1]},`), record[1:]...)
		out[i], err = store.NewItem(item.Kind, item.ID, 0, record)
		require.NoError(s.t, err)
		out[i].Key = item.Key
	}
	return out
}

func (s *laterStore) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	p.Items = s.pass(p.Items)
	return s.Store.Commit(ctx, p)
}

func (s *laterStore) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	return s.Store.Update(ctx, key, s.pass(items)...)
}

// No record loses what a newer program wrote in it, whoever writes it again: steps,
// answers, refusals, deadlines, ends of runs.
func TestUnknownFields_outlive_every_rewrite(t *testing.T) {
	t.Parallel()
	w := asker(t)
	later := &laterStore{Store: w.store, t: t, rewritten: map[store.ItemKind]int{}}
	w.store, w.cfg.Store = later, later
	for input, answers := range map[string][]session.Answer{
		"approve": {yes()}, "two": {yes(), no()}, "client": {{Result: json.RawMessage(`"here"`)}},
		"pick": {{Selected: []string{"red"}}}, "name": {text("ana")}, "input": {{Message: llm.TextParts("there")}}, "guarded": {},
	} {
		s := w.another()
		w.number++
		p := s.process()
		s.run(p, input)
		if input == "guarded" {
			_, err := s.submit(p, session.WaitApproval, yes())
			require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
			continue
		}
		for _, answer := range answers {
			for _, record := range s.waits() {
				if record.State == session.WaitOpen {
					_, err := s.submit(p, record.Wait.Kind, answer)
					require.NoError(t, err)
					break
				}
			}
		}
		require.NoError(t, p.settle(), input)
		require.Equal(t, session.StatusCompleted, s.session().Status, input)
	}
	for _, kind := range []store.ItemKind{store.KindHead, store.KindWait, store.KindRun, store.KindTool} {
		require.NotZero(t, later.rewritten[kind], kind)
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestNewerWake_is_not_buried: a message that a newer program sent is refused by a
// worker of today. Among the dead letters it stays for the program that reads it, in
// nobody's way, and is no failure of this one.
func TestNewerWake_is_not_buried(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := waiting(t, "approve")
	wake := journal.NewWake(w.key, 9, "notice")
	wake.V = journal.WakeVersion + 1
	_, err := p.Deliver(ctx, wake)
	require.ErrorContains(t, err, "newer than this program reads")
	_, err = p.DeadLetter(ctx, wake)
	require.ErrorContains(t, err, "newer than this program reads")
	require.NoError(t, w.dead.Send(ctx, wake))
	require.NoError(t, w.dead.Send(ctx, w.wake(1, journal.WakeStep)))
	require.NoError(t, p.HandleDeadLetters(ctx))
	w.flush()
	left := func() []queue.Delivery {
		deliveries, err := w.dead.Receive(ctx, queue.ReceiveParams{Max: 10, Visibility: time.Second})
		require.NoError(t, err)
		return deliveries
	}
	require.Empty(t, left())
	w.clock.advance(journal.MaxAhead - time.Second)
	require.Empty(t, left(), "each time it is looked at costs a request: as seldom as a queue allows")
	w.clock.advance(2 * time.Second)
	later := left()
	require.Len(t, later, 1)
	require.Equal(t, wake.V, later[0].Wake.V)
	require.Equal(t, wake.Kind, later[0].Wake.Kind)
}
