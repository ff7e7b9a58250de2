package control

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// How much of a list of effects is shown; its digest is that of the whole.
const (
	maxEffects     = 200
	maxEffectValue = 4 << 10 // bytes of arguments, or of a result
)

// ledgers returns the ledgers of all calls of a session, by call.
func (c *Control) ledgers(ctx context.Context, key session.Key) (map[string]store.Item, error) {
	items, err := c.cfg.Sessions.Items(ctx, key, store.KindTool, "")
	if err != nil {
		return nil, err
	}
	ledgers := make(map[string]store.Item, len(items))
	for _, item := range items {
		ledgers[item.ID] = item
	}
	return ledgers, nil
}

// ran reports whether a ledger says that its call was started.
func ran(record journal.ToolRecord) bool {
	return record.State == journal.ToolStarted || record.State == journal.ToolFinished
}

// effects lists what a session did after the checkpoint: calls with effects that its history does not hold.
func (c *Control) effects(was past, ledgers map[string]store.Item) (session.EffectsDone, error) {
	open := map[string]bool{}
	for _, call := range was.to.Calls {
		open[call.FirstID()] = true
	}
	seen := map[string]bool{}
	all := []session.EffectDone{}
	add := func(m engine.Made) {
		seen[m.Call.ID] = true
		var record journal.ToolRecord
		if item := ledgers[m.Call.ID]; item.Tool != nil {
			record = *item.Tool
		}
		if done, ok := c.effect(was.to.Rules.Agent, m, record); ok {
			done.Kept = open[m.Call.FirstID()] && ran(record)
			all = append(all, done)
		}
	}
	for _, m := range was.left {
		add(m)
	}
	for _, call := range was.to.Calls { // whose worker died before an entry told of them
		if !seen[call.ID] {
			add(engine.Made{Call: call})
		}
	}
	return listed(all)
}

// effect tells what a call did; ok is false for one that did nothing.
func (c *Control) effect(agent string, m engine.Made, record journal.ToolRecord) (done session.EffectDone, ok bool) {
	done = session.EffectDone{Call: m.Call.ID, Tool: m.Call.Name, Arguments: m.Call.Arguments, Outcome: llm.ResultUnknown, At: record.At}
	switch {
	case m.Run != nil:
		done.At = m.Run.At
	case done.At.IsZero():
		done.At = m.At
	}
	result := m.Result
	switch {
	case record.State == journal.ToolFinished:
		result = record.Result
	case record.State == journal.ToolStarted:
	case m.ByClient && m.Result != nil:
	case m.Run == nil || !c.cfg.HasEffects(agent, m.Call.Name):
		return done, false
	}
	if result != nil {
		done.Outcome, done.Result = result.Status, result.Output
	}
	return done, true
}

// listed makes a list, with its digest, of effects.
func listed(all []session.EffectDone) (session.EffectsDone, error) {
	list := session.EffectsDone{Count: len(all), Items: all}
	if len(all) == 0 {
		return list, nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return session.EffectsDone{}, fmt.Errorf("list the effects: %w", err)
	}
	list.Digest = journal.Digest(raw)
	list.Items = all[:min(len(all), maxEffects)]
	for i := range list.Items {
		e := &list.Items[i]
		if len(e.Arguments) > maxEffectValue {
			e.Arguments = nil
		}
		if len(e.Result) > maxEffectValue {
			e.Result = nil
		}
	}
	return list, nil
}
