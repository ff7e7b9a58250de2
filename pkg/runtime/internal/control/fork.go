package control

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// ForkRequest begins a session of its own from a checkpoint of another one.
type ForkRequest struct {
	// Origin is the session that is copied; it is only read.
	Origin session.Key
	// Checkpoint of the origin; empty for its newest one.
	Checkpoint string
	// Key of the new session.
	Key session.Key
	// Message to go on with, if any.
	Message []llm.Part
	// Rules are what the caller asks of the task.
	Rules session.TaskRules
	// Tags of the new session.
	Tags []string
	// Who asks, and from where.
	Who, From string
	// Record returns what remembers the request, together with what it did to an entry.
	Record func(seq int64, did any) ([]store.Item, error)
}

// Fork reads and writes once, as [Control.Stop] does.
func (c *Control) Fork(ctx context.Context, p *ForkRequest) (Began, error) {
	head, err := c.cfg.Sessions.ExistingHead(ctx, p.Origin)
	if err != nil {
		return Began{}, err
	}
	there, err := c.cfg.Sessions.Item(ctx, p.Key, store.KindHead, "")
	if err != nil {
		return Began{}, err
	}
	if there.Head != nil {
		return Began{}, refusal.New(codes.SessionExists, p.Key, "there is such a session, or was: fork to another id")
	}
	was, err := c.past(ctx, p.Origin, func(now *session.Session, entries []journal.Entry) (int64, error) {
		if p.Checkpoint == "" {
			return now.CheckpointSeq, nil
		}
		return find(p.Origin, entries, p.Checkpoint)
	})
	if err != nil {
		return Began{}, err
	}
	if err := stored.CheckNewest(was.to, head.Head); err != nil {
		return Began{}, err
	}
	fork := engine.GoingBack{To: was.to, Trigger: session.TriggerFork, Message: message(p.Message)}
	if fork.Rules, err = c.cfg.Rules(ctx, was.now.Rules.Agent, p.Rules.Over(was.now.Rules.Asked)); err != nil {
		return Began{}, err
	}
	fork.Rules.HoldAlso(was.now.Rules.ProgramPolicy)
	ledgers, err := c.ledgers(ctx, p.Origin)
	if err != nil {
		return Began{}, err
	}
	if was.left, err = engine.LeftBehind(p.Origin, was.entries, was.to.Version); err != nil {
		return Began{}, corrupt(p.Origin, err)
	}
	c.leaveToOrigin(&fork, was, ledgers)
	m, asked := engine.Forked(p.Key, fork, c.stamp(p.Who, p.From))
	m.Entry.Tags = slices.Clone(p.Tags)
	m.Title, m.ForkedFrom = head.Head.Title, &session.Fork{Session: p.Origin.ID, Checkpoint: was.entries[was.to.Version-1].Checkpoint(p.Origin.ID).String()}
	began := begun(p.Key, m, session.EffectsDone{})
	began.ForkedFrom = m.ForkedFrom
	items, err := p.Record(m.Entry.Seq, began)
	if err != nil {
		return Began{}, err
	}
	name := forkName(p.Origin.ID) + p.Key.ID
	items = append(items, remembered(ledgers, was, asked)...)
	if len(items)+len(m.Waits)+1+stored.BesideMove > store.MaxItems {
		return Began{}, tooMuchOpen(p.Origin, was.now.Status)
	}
	items = append(items, store.TenantItem(journal.TenantRecord{Name: name, Value: []byte("{}")}, 0))
	return began, c.cfg.Sessions.Commit(ctx, &session.Session{Key: p.Key}, &there, m, items)
}

// leaveToOrigin settles the calls that are open at the checkpoint and that the fork does not make: those
// that the origin has started, and those with effects that nobody is asked about, which the origin
// makes. What people are asked for at the checkpoint they are asked in the fork too, whatever they
// answered the origin since.
func (c *Control) leaveToOrigin(fork *engine.GoingBack, was past, ledgers map[string]store.Item) {
	waits := func(call session.Call) bool {
		return slices.ContainsFunc(was.to.Waits, func(w session.Wait) bool { return w.Call == call.ID && w.Kind != session.WaitUnknown })
	}
	left := was
	left.to = &session.Session{Calls: slices.DeleteFunc(slices.Clone(was.to.Calls), waits)}
	takeOutcomes(fork, left, ledgers)
	for _, call := range left.to.Calls {
		settled := slices.ContainsFunc(fork.Results, func(r llm.ToolResult) bool { return r.CallID == call.ID })
		if !settled && c.cfg.HasEffects(was.to.Rules.Agent, call.Name) {
			fork.Results = append(fork.Results, engine.Result(call, llm.ResultCancelled, engine.TextForked))
		}
	}
}

// forkName begins the names of the records of a tenant that tell of the forks of a session.
func forkName(origin string) string { return "fork/" + origin + "/" }

// Forks returns HEAD of each fork of a session that is still there, by their ids.
func (c *Control) Forks(ctx context.Context, key session.Key) ([]journal.Head, error) {
	if _, err := c.cfg.Sessions.ExistingHead(ctx, key); err != nil {
		return nil, err
	}
	items, err := c.cfg.Sessions.Items(ctx, session.Key{Tenant: key.Tenant}, store.KindTenantRecord, forkName(key.ID)+"*")
	if err != nil {
		return nil, err
	}
	heads := []journal.Head{}
	for _, item := range items {
		fork := session.Key{Tenant: key.Tenant, ID: item.ID[len(forkName(key.ID)):]}
		head, err := c.cfg.Sessions.Item(ctx, fork, store.KindHead, "")
		if err != nil {
			return nil, err
		}
		if head.Head != nil && !head.Head.Gone(c.cfg.Now()) {
			heads = append(heads, *head.Head)
		}
	}
	return heads, nil
}
