package control

import (
	"context"
	"fmt"
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

// BackRequest begins a task from a checkpoint of the session.
type BackRequest struct {
	Key session.Key
	// Checkpoint to go back to. Empty for a retry from Start, or from where the task failed.
	Checkpoint string
	// Retry says that the session has failed and is tried again; Start from the beginning of its task.
	Retry, Start bool
	// Message to go on with, if any.
	Message []llm.Part
	// Acknowledge is the digest of the effects that the caller has seen.
	Acknowledge string
	// Who asks, and from where.
	Who, From string
	// Record returns what remembers the request, together with what it did to an entry.
	Record func(seq int64, did any) ([]store.Item, error)
}

// Began is a task that has begun.
type Began struct {
	Task       int64
	Seq        int64
	Checkpoint string
	// Status of the session after it: running, suspended, or, of a fork that rests, interrupted.
	Status session.Status
	// Open waits of a session that asks anew.
	Open []session.Wait
	// Effects done after the checkpoint.
	Effects session.EffectsDone
	// ForkedFrom says what a fork is a copy of.
	ForkedFrom *session.Fork `json:",omitempty"`
}

// past is a session as going back reads it.
type past struct {
	entries []journal.Entry
	now, to *session.Session
	// left are the calls that the history of to does not hold.
	left []engine.Made
}

// Back reads and writes once, as [Control.Stop] does. It writes one entry: nothing is deleted.
func (c *Control) Back(ctx context.Context, p *BackRequest) (Began, error) {
	head, err := c.cfg.Sessions.ExistingHead(ctx, p.Key)
	if err != nil {
		return Began{}, err
	}
	was, err := c.past(ctx, p.Key, func(now *session.Session, entries []journal.Entry) (int64, error) {
		return c.goesTo(now, entries, p)
	})
	if err != nil {
		return Began{}, err
	}
	if was.left, err = engine.LeftBehind(p.Key, was.entries, was.to.Version); err != nil {
		return Began{}, corrupt(p.Key, err)
	}
	back := engine.GoingBack{To: was.to, Trigger: session.TriggerResume, Message: message(p.Message)}
	if p.Retry {
		back.Trigger = session.TriggerRetry
	}
	if back.Rules, err = c.cfg.Rules(ctx, was.now.Rules.Agent); err != nil {
		return Began{}, err
	}
	effects, err := c.acknowledged(ctx, was, p, &back)
	if err != nil {
		return Began{}, err
	}
	waits, err := c.cfg.Sessions.WaitsAt(ctx, p.Key, stored.WaitsAtOf(was.now))
	if err != nil {
		return Began{}, err
	}
	answers, items := stored.TakeWaits(was.now, waits, was.now.Next(), c.cfg.StepBytes)
	back.Answers = answers
	if len(was.now.Calls) > 0 {
		_, closed, err := c.cfg.Worker.CloseOpenCalls(ctx, was.now, len(items)+len(was.to.Waits)+1)
		if err != nil {
			return Began{}, err
		}
		items = append(items, closed...)
		// What has begun since the list was made is closed by nobody: then the list is another one.
		if effects, err = c.acknowledged(ctx, was, p, &back); err != nil {
			return Began{}, err
		}
	}
	m := engine.Restored(was.now, back, c.stamp(p.Who, p.From))
	began := begun(p.Key, m, effects)
	record, err := p.Record(m.Entry.Seq, began)
	if err != nil {
		return Began{}, err
	}
	return began, c.cfg.Sessions.Commit(ctx, was.now, &head, m, append(items, record...))
}

func message(parts []llm.Part) *llm.Message {
	if parts == nil {
		return nil
	}
	return new(llm.UserParts(parts))
}

func (c *Control) stamp(who, from string) engine.Stamp {
	return engine.Stamp{Now: c.cfg.Now(), By: who, From: from, Attempt: session.Attempt{ID: c.cfg.NewID()}, Token: c.cfg.NewID()}
}

func begun(key session.Key, m engine.Move, effects session.EffectsDone) Began {
	e := &m.Entry
	return Began{Task: e.Task, Seq: e.Seq, Checkpoint: e.Checkpoint(key.ID).String(), Status: e.Status, Open: e.Waits, Effects: effects}
}

// past reads a session whole, and folds it up to the entry that goesTo names.
func (c *Control) past(ctx context.Context, key session.Key, goesTo func(*session.Session, []journal.Entry) (int64, error)) (past, error) {
	entries, err := c.cfg.Sessions.Entries(ctx, key)
	if err != nil {
		return past{}, err
	}
	now, err := fold(key, entries)
	if err != nil {
		return past{}, err
	}
	if now.Version == 0 || now.Newest.Kind == session.KindDeleted {
		return past{}, refusal.NoSession(key)
	}
	seq, err := goesTo(now, entries)
	if err != nil {
		return past{}, err
	}
	to, err := fold(key, entries[:seq])
	return past{entries: entries, now: now, to: to}, err
}

func fold(key session.Key, entries []journal.Entry) (*session.Session, error) {
	s, err := engine.Fold(key, entries)
	if err != nil {
		return nil, corrupt(key, err)
	}
	return s, nil
}

func corrupt(key session.Key, err error) error {
	return fmt.Errorf("load session %s: %w: %w", key, store.ErrCorrupt, err)
}

// goesTo returns the entry that a request goes back to, or refuses the request.
func (c *Control) goesTo(now *session.Session, entries []journal.Entry, p *BackRequest) (int64, error) {
	switch {
	case now.Status == session.StatusRunning:
		return 0, refusal.At(codes.AlreadyRunning, p.Key, now.Status, "it is running. Interrupt it first")
	case p.Retry && now.Status != session.StatusFailed:
		return 0, refusal.At(codes.NotResumable, p.Key, now.Status, "it is %s: only what has failed is tried again", now.Status)
	case p.Retry && now.Failure != nil && now.Failure.Type == engine.FailureAborted:
		return 0, refusal.At(codes.NotResumable, p.Key, now.Status, "it was aborted, which is for good. Go back to a checkpoint with resume, or fork it")
	case p.Start:
		return startOf(now.Task, entries), nil
	case p.Retry && p.Checkpoint == "":
		return now.Version, nil
	}
	seq, err := find(p.Key, entries, p.Checkpoint)
	if err != nil {
		return 0, err
	}
	if status := entries[seq-1].Status; p.Message == nil && (status == session.StatusCompleted || status == session.StatusCancelled) {
		return 0, refusal.New(codes.InvalidInput, p.Key, "its task was %s at that checkpoint, so there is nothing to go on with. Add a message", status)
	}
	return seq, nil
}

// startOf returns the entry at which a task began. A retry without a message goes on with the task
// that failed, so it began where that did.
func startOf(task int64, entries []journal.Entry) int64 {
	for {
		first := &entries[slices.IndexFunc(entries, func(e journal.Entry) bool { return e.Task == task })]
		said := slices.ContainsFunc(first.Messages, func(m llm.Message) bool { return m.Role == llm.RoleUser })
		if first.Trigger != session.TriggerRetry || first.Base == nil || said {
			return first.Seq
		}
		task = entries[first.Base.Seq-1].Task
	}
}

// find returns the entry of a checkpoint.
func find(key session.Key, entries []journal.Entry, id string) (int64, error) {
	cp, err := session.ParseCheckpoint(id)
	if err != nil {
		return 0, err
	}
	if cp.Session != key.ID || cp.Seq > int64(len(entries)) || entries[cp.Seq-1].Token != cp.Token {
		return 0, refusal.New(codes.CheckpointNotFound, key, "it has no such checkpoint")
	}
	if !entries[cp.Seq-1].IsCheckpoint() {
		return 0, stored.NoCheckpoint(key, cp.Seq)
	}
	return cp.Seq, nil
}

// acknowledged lists the effects done after the checkpoint, refuses a request that has not seen this
// list, and notes what became of the calls that are open at the checkpoint.
func (c *Control) acknowledged(ctx context.Context, was past, p *BackRequest, back *engine.GoingBack) (session.EffectsDone, error) {
	records, err := c.ledgers(ctx, p.Key)
	if err != nil {
		return session.EffectsDone{}, err
	}
	list, err := c.effects(was, records)
	if err != nil {
		return list, err
	}
	if list.Digest != p.Acknowledge {
		return list, unacknowledged(p.Key, was.now.Status, list, p.Acknowledge)
	}
	takeOutcomes(back, was.to.Calls, records)
	return list, nil
}

func unacknowledged(key session.Key, status session.Status, list session.EffectsDone, given string) error {
	made := "1 call"
	if list.Count != 1 {
		made = fmt.Sprintf("%d calls", list.Count)
	}
	text := "it has made %s with effects after that checkpoint, which going back does not undo. Look at the list, and acknowledge its digest %s"
	if given != "" {
		text = "what it has done after that checkpoint is not what was acknowledged: it has made %s with effects. Look at the list, and acknowledge its digest %s"
	}
	r := refusal.At(codes.EffectsNotAcknowledged, key, status, text, made, list.Digest)
	if list.Count == 0 {
		r.Message = "it has done nothing with effects after that checkpoint: there is nothing to acknowledge"
	}
	r.Effects = &list
	return r
}

// takeOutcomes notes the outcomes of calls that were started: they are not asked again.
func takeOutcomes(back *engine.GoingBack, calls []session.Call, records map[string]journal.ToolRecord) {
	back.Results, back.StateOps, back.Events = nil, nil, nil
	for _, call := range calls {
		record := records[call.ID]
		switch {
		case record.State == journal.ToolFinished && record.Result != nil:
			back.Results = append(back.Results, *record.Result)
			back.StateOps = append(back.StateOps, record.StateOps...)
			back.Events = append(back.Events, record.Events...)
		case ran(record):
			back.Results = append(back.Results, engine.Result(call, llm.ResultUnknown, engine.TextUnknown))
		}
	}
}
