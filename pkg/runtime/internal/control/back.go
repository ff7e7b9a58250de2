package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	// Rules are what the caller asks of the task.
	Rules session.TaskRules
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

// leftBehind notes the calls that were made after the checkpoint, those with a client's stored answer
// included, and returns the waits of the suspension the session is in.
func (c *Control) leftBehind(ctx context.Context, key session.Key, was *past) (waits []store.Item, err error) {
	if was.left, err = engine.LeftBehind(key, was.entries, was.to.Version); err != nil {
		return nil, corrupt(key, err)
	}
	if waits, err = c.cfg.Sessions.WaitsAt(ctx, key, stored.WaitsAtOf(was.now)); err != nil {
		return nil, err
	}
	was.brought(waits)
	return waits, nil
}

// brought notes what clients have answered and the session has not taken in: they have done it.
func (was *past) brought(waits []store.Item) {
	for _, item := range waits {
		answer := item.Wait.Answer
		if item.Wait.State != session.WaitAnswered || answer == nil || answer.Kind != session.AnswerClientTool {
			continue
		}
		at := slices.IndexFunc(was.left, func(m engine.Made) bool { return m.Call.ID == item.Wait.Wait.Call })
		if at < 0 {
			i := slices.IndexFunc(was.now.Calls, func(c session.Call) bool { return c.ID == item.Wait.Wait.Call })
			if i < 0 {
				continue
			}
			was.left, at = append(was.left, engine.Made{Call: was.now.Calls[i]}), len(was.left)
		}
		was.left[at].BroughtBy(*answer)
	}
}

const (
	// mostWaits is how many waits one entry closes and opens: as many as a suspension has.
	mostWaits = 80
	// mostOthers are the items beside these: what remembers the request, and calls that have started.
	mostOthers = 8
)

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
	if err := stored.CheckNewest(was.to, head.Head); err != nil {
		return Began{}, err
	}
	back := engine.GoingBack{To: was.to, Trigger: session.TriggerResume, Message: message(p.Message)}
	if p.Retry {
		back.Trigger = session.TriggerRetry
	}
	if back.Rules, err = c.cfg.Rules(ctx, was.now.Rules.Agent, p.Rules.Over(was.now.Rules.Asked)); err != nil {
		return Began{}, err
	}
	back.Rules.HoldAlso(was.now.Rules.ProgramPolicy)
	waits, err := c.leftBehind(ctx, p.Key, &was)
	if err != nil {
		return Began{}, err
	}
	_, ledgers, err := c.acknowledged(ctx, was, p, &back)
	if err != nil {
		return Began{}, err
	}
	answers, items := stored.TakeWaits(was.now, waits, was.now.Next(), c.cfg.StepBytes)
	back.Answers = answers
	memos := len(remembered(ledgers, was, back.AskedAnew(was.now.Next())))
	back.AsksLater = len(items)+len(was.to.Waits)+memos > mostWaits
	asked := len(was.to.Waits)
	if back.AsksLater {
		asked = 1 // one for input belongs to no call
	}
	if len(items)+asked+memos+mostOthers+stored.BesideMove > store.MaxItems {
		return Began{}, tooMuchOpen(p.Key, was.now.Status)
	}
	if len(was.now.Calls) > 0 {
		_, closed, err := c.cfg.Worker.CloseOpenCalls(ctx, was.now, len(items)+asked+memos+mostOthers)
		if err != nil {
			return Began{}, err
		}
		items = append(items, closed...)
	}
	// What has begun since the list was made is closed by nobody: then the list is another one.
	effects, ledgers, err := c.acknowledged(ctx, was, p, &back)
	if err != nil {
		return Began{}, err
	}
	m := engine.Restored(was.now, back, c.stamp(p.Who, p.From))
	items = append(items, remembered(ledgers, was, back.AskedAnew(m.Entry.Seq))...)
	items = append(items, unchanged(ledgers, was, store.MaxItems-stored.BesideMove-1-len(items)-len(m.Waits))...)
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
	case p.Retry && now.Status == session.StatusRunning:
		return 0, refusal.At(codes.AlreadyRunning, p.Key, now.Status, "it is running: only what has failed is tried again")
	case now.Status == session.StatusRunning:
		return 0, refusal.At(codes.AlreadyRunning, p.Key, now.Status, "it is running. Interrupt it first")
	case p.Retry && now.Status != session.StatusFailed:
		return 0, refusal.At(codes.NotResumable, p.Key, now.Status, "it is %s: only what has failed is tried again", now.Status)
	case p.Retry && now.Failure.Aborted():
		return 0, aborted(p.Key, now.Status)
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

// aborted refuses to go on with a session that was aborted.
func aborted(key session.Key, status session.Status) error {
	return refusal.At(codes.NotResumable, key, status, "it was aborted, which is for good. Go back to a checkpoint with resume, or fork it")
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
// list, and notes what became of the calls that are open at the checkpoint. It returns the ledgers
// that it has read.
func (c *Control) acknowledged(ctx context.Context, was past, p *BackRequest, back *engine.GoingBack) (session.EffectsDone, map[string]store.Item, error) {
	ledgers, err := c.ledgers(ctx, p.Key)
	if err != nil {
		return session.EffectsDone{}, nil, err
	}
	list, err := c.effects(was, ledgers)
	if err != nil {
		return list, nil, err
	}
	if list.Digest != p.Acknowledge {
		return list, nil, unacknowledged(p.Key, was.now.Status, list, p.Acknowledge)
	}
	takeOutcomes(back, was, ledgers)
	return list, ledgers, nil
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

// takeOutcomes notes the outcomes of calls that were started: they are not asked again. A call that an
// earlier way back to the checkpoint has asked anew is the same call.
func takeOutcomes(back *engine.GoingBack, was past, ledgers map[string]store.Item) {
	back.Results, back.StateOps, back.Events = nil, nil, nil
	for _, call := range was.to.Calls {
		record := newestRun(call, was.left, ledgers)
		switch {
		case record == nil:
		case record.State == journal.ToolFinished && record.Result != nil:
			result := *record.Result
			result.CallID = call.ID
			back.Results = append(back.Results, result)
			back.StateOps = append(back.StateOps, record.StateOps...)
			back.Events = append(back.Events, record.Events...)
		default:
			back.Results = append(back.Results, engine.Result(call, llm.ResultUnknown, engine.TextUnknown))
		}
	}
}

// newestRun returns the ledger of the newest run of a call, under whatever id; nil for none.
func newestRun(call session.Call, left []engine.Made, ledgers map[string]store.Item) (newest *journal.ToolRecord) {
	for _, id := range idsOf(call, left) {
		record := ledgers[id].Tool
		if record != nil && ran(*record) && (newest == nil || record.At.After(newest.At)) {
			newest = record
		}
	}
	return newest
}

// idsOf are the ids that a call has, and has had since, where an earlier way back has asked it anew.
func idsOf(call session.Call, left []engine.Made) []string {
	ids := []string{call.ID}
	for _, m := range left {
		if m.Call.FirstID() == call.FirstID() {
			ids = append(ids, m.Call.ID)
		}
	}
	return ids
}

// tooMuchOpen refuses what does not fit into one entry. Nothing has been closed for it.
func tooMuchOpen(key session.Key, status session.Status) error {
	return refusal.At(codes.NotResumable, key, status, "more is open, there and now, than one entry can close and take along. Cancel it first, or choose another checkpoint")
}

// remembered are the ledgers of calls that are asked anew, with what Once has remembered of them, under
// whatever id: that has happened, and is not undone either.
func remembered(ledgers map[string]store.Item, was past, asked map[string]string) (items []store.Item) {
	for _, call := range was.to.Calls {
		id, is := asked[call.ID]
		if !is {
			continue
		}
		kept := journal.ToolRecord{Call: id, State: journal.ToolMemo, Memo: map[string]json.RawMessage{}}
		for _, id := range idsOf(call, was.left) {
			if record := ledgers[id].Tool; record != nil && len(record.Memo) > 0 {
				maps.Copy(kept.Memo, record.Memo)
				kept.At = record.At
			}
		}
		if len(kept.Memo) > 0 {
			items = append(items, store.ToolItem(kept, 0))
		}
	}
	return items
}

// unchanged are the ledgers of calls that have started and not finished, as they were read: an entry
// that says that their outcome is unknown is refused if one finishes meanwhile. At most so many.
func unchanged(ledgers map[string]store.Item, was past, most int) (items []store.Item) {
	for _, id := range slices.Sorted(maps.Keys(ledgers)) {
		item := ledgers[id]
		listed := slices.ContainsFunc(was.left, func(m engine.Made) bool { return m.Call.ID == id }) ||
			slices.ContainsFunc(was.to.Calls, func(c session.Call) bool { return c.ID == id })
		if item.Tool.State == journal.ToolStarted && listed && len(items) < most {
			items = append(items, item)
		}
	}
	return items
}
