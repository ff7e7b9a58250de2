package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// How much of a session is read to say what its task has done.
const (
	// lookedBack is how many of the newest entries are read.
	lookedBack = 200
	// maxShownEffects is how many effects are listed, the newest.
	maxShownEffects = 50
	// maxOpenLedgers is how many ledgers of open calls are read.
	maxOpenLedgers = 16
)

// done lists the effects that the present task of a session has had by the newest of its entries: one
// read of those, and one of the ledger of each open call, up to a bound. Count is that of all that were
// found, Items the newest; it has no digest, for nothing is acknowledged by it.
func (c *Control) done(ctx context.Context, s *session.Session) (session.EffectsDone, error) {
	var entries []journal.Entry
	for e, err := range c.cfg.Sessions.EntriesAfter(ctx, s.Key, max(s.Version-lookedBack, 0)) {
		if err != nil {
			return session.EffectsDone{}, err
		}
		if e.Task == s.Task {
			entries = append(entries, e)
		}
	}
	all := []session.EffectDone{}
	opened := 0
	for _, m := range engine.MadeIn(entries, s.Calls) {
		var record journal.ToolRecord
		isOpen := slices.ContainsFunc(s.Calls, func(call session.Call) bool { return call.ID == m.Call.ID })
		if isOpen && c.cfg.HasEffects(s.Rules.Agent, m.Call.Name) && opened < maxOpenLedgers {
			opened++
			item, err := c.cfg.Sessions.Item(ctx, s.Key, store.KindTool, m.Call.ID)
			if err != nil {
				return session.EffectsDone{}, err
			}
			if item.Tool != nil {
				record = *item.Tool
			}
		}
		if done, ok := c.effect(s.Rules.Agent, m, record); ok {
			all = append(all, done)
		}
	}
	count := len(all)
	list, err := listed(all[max(count-maxShownEffects, 0):])
	list.Count, list.Digest = count, ""
	return list, err
}

// How much of a conversation is shown beside a wait.
const (
	waitMessages = 10
	waitText     = 2000 // characters of a message
)

// WaitView is a wait with what a person needs to decide. Its size does not grow with the session.
type WaitView struct {
	Record journal.WaitRecord
	// MayAnswer says of the caller who asks that they may; For is in whose place they would.
	MayAnswer bool
	For       string
	// StandIns say who stands in now for people whom an open wait names.
	StandIns []session.StandIn
	// Status of the session, its task, and how much it waits for.
	Status session.Status
	Task   int64
	Open   int
	// Messages are the last ones that say something, the oldest first; Earlier counts those before.
	Messages []SaidMessage
	Earlier  int
	// Usage, Used and Limits of the task so far.
	Usage  llm.Usage
	Used   session.Amounts
	Limits []session.LimitUse
	// Effects that the task has had.
	Effects session.EffectsDone
}

// SaidMessage is the text of a message, or the beginning of it.
type SaidMessage struct {
	Role llm.Role
	Text string
	// Cut says that there is more.
	Cut bool
}

// Wait reads a wait with what a person needs to decide who asks for it.
func (c *Control) Wait(ctx context.Context, key session.Key, id string, by answers.Caller) (WaitView, error) {
	a, err := c.cfg.Sessions.LoadSuspension(ctx, key)
	if err != nil {
		return WaitView{}, err
	}
	item, err := c.cfg.Sessions.Wait(ctx, a, id)
	if err != nil {
		return WaitView{}, err
	}
	if item.Wait == nil {
		return WaitView{}, refusal.New(codes.WaitNotFound, key, "there is no wait %q", id)
	}
	s, err := c.cfg.Sessions.LoadExisting(ctx, key)
	if err != nil {
		return WaitView{}, err
	}
	defer c.cfg.Sessions.PutBack(s)
	done, err := c.done(ctx, s)
	if err != nil {
		return WaitView{}, fmt.Errorf("session %s: what its task has done: %w", key, err)
	}
	record := c.cfg.Sessions.AsOfNow(*item.Wait)
	standIns, err := c.standIns(ctx, key, record)
	if err != nil {
		return WaitView{}, err
	}
	by = answers.Among(standIns, record.Wait, by)
	out := WaitView{
		StandIns: standIns,
		Record:   record, MayAnswer: answers.MayAnswer(record.Wait, by), Status: s.Status, Task: s.Task,
		Open: stored.CountOpen(stored.WaitRecords(a.Items)), Usage: s.TaskUsage, Used: s.Used, Limits: s.LimitUses(), Effects: done,
	}
	if out.MayAnswer {
		out.For = answers.InPlaceOf(out.Record, by)
	}
	out.Messages, out.Earlier = lastSaid(s.Messages)
	return out, nil
}

// standIns are those in force that lead on from whom an open wait names.
func (c *Control) standIns(ctx context.Context, key session.Key, record journal.WaitRecord) ([]session.StandIn, error) {
	if record.State != session.WaitOpen || len(record.Wait.Who) == 0 {
		return nil, nil
	}
	all, err := c.cfg.Away.InForce(ctx, key.Tenant)
	if err != nil {
		return nil, err
	}
	var out []session.StandIn
	for people := slices.Clone(record.Wait.Who); len(people) > 0; people = people[1:] {
		for _, s := range all {
			if s.Person == people[0] && !slices.Contains(out, s) {
				out, people = append(out, s), append(people, s.StandIn)
			}
		}
	}
	return out, nil
}

// lastSaid returns the last messages that say something in words, and how many came before.
func lastSaid(messages []llm.Message) (said []SaidMessage, earlier int) {
	var all []llm.Message
	for _, m := range messages {
		if (m.Role == llm.RoleUser || m.Role == llm.RoleAssistant) && m.Text() != "" {
			all = append(all, m)
		}
	}
	earlier = max(len(all)-waitMessages, 0)
	said = []SaidMessage{}
	for _, m := range all[earlier:] {
		text := []rune(m.Text())
		said = append(said, SaidMessage{Role: m.Role, Text: string(text[:min(len(text), waitText)]), Cut: len(text) > waitText})
	}
	return said, earlier
}
