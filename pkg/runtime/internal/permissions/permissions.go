// Package permissions finds the standing permission that covers a call, lists those of a session, and
// revokes one.
package permissions

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/standing"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Finder finds what covers the calls of one step. It reads the record of a wait only if the permission
// that it gave would cover a call.
type Finder struct {
	Sessions *stored.Sessions
	Registry *agent.Registry
	Session  *session.Session
	// Digest of the agent as it is now.
	Digest string
	// Requesters asked for the task, with those whose messages the step takes in.
	Requesters []string
	Now        time.Time
	// Err is the first error of the store; what was found then does not count.
	Err error

	read map[string]*session.Permission
}

// Traits adds to what is known of a call which permission covers it.
func (f *Finder) Traits(ctx context.Context, traits func(session.Call, json.RawMessage) engine.Traits) func(session.Call, json.RawMessage) engine.Traits {
	if len(f.Session.Permissions) == 0 {
		return traits
	}
	return func(c session.Call, arguments json.RawMessage) engine.Traits {
		out := traits(c, arguments)
		if t, ok := f.Registry.Tool(f.Session.Rules.Agent, c.Name); ok && out.Known && out.Problem == "" && t.Standing() > 0 {
			out.Permission = func() *session.Permission { return f.covering(ctx, t, out) }
		}
		return out
	}
}

// covering returns the newest permission that covers a call.
func (f *Finder) covering(ctx context.Context, t tool.Tool, is engine.Traits) *session.Permission {
	candidates := slices.DeleteFunc(slices.Clone(f.Session.Permissions), func(p session.Permission) bool {
		return !f.counts(&p, t.Name(), is.Rule) || !standing.Covers(p.Standing.Conditions, p.Arguments, is.Arguments)
	})
	if len(candidates) == 0 {
		return nil
	}
	if shown := toolrun.Preview(t, is.Arguments); shown != nil && shown.Risk == session.RiskHigh {
		return nil
	}
	for i := range slices.Backward(candidates) {
		if p := f.unrevoked(ctx, &candidates[i]); p != nil {
			return p
		}
	}
	return nil
}

// counts reports whether by the journal a permission is one for calls of a tool that are made now.
func (f *Finder) counts(p *session.Permission, name string, rule *session.AnswerRule) bool {
	s := f.Session
	switch {
	case p.Tool != name || p.Policy != f.Digest || over(p, f.Now):
		return false
	case s.Rules.ModeOf(name) == session.ToolPrompt && p.RulesAt != s.RulesAt:
		return false // the policy asks, and who gave it was not asked by this policy
	case rule != nil && rule.NotRequester && (slices.Contains(f.Requesters, p.Who) || slices.Contains(f.Requesters, p.For)):
		return false
	}
	return true
}

// over reports whether a permission has ended. One that would last for longer than any does not count:
// a clock was set back.
func over(p *session.Permission, now time.Time) bool {
	return journal.Come(p.Standing.Until, now, session.MaxStanding)
}

// unrevoked returns a permission if the record of its wait says that it counts. It is read once in a step.
func (f *Finder) unrevoked(ctx context.Context, p *session.Permission) *session.Permission {
	if known, ok := f.read[p.ID]; ok {
		return known
	}
	item, err := f.Sessions.Item(ctx, f.Session.Key, store.KindWait, p.ID)
	if err != nil {
		if f.Err == nil {
			f.Err = err
		}
		return nil
	}
	if f.read == nil {
		f.read = map[string]*session.Permission{}
	}
	if f.read[p.ID] = nil; gives(item.Wait, p) && item.Wait.Revoked == nil {
		f.read[p.ID] = p
	}
	return f.read[p.ID]
}

// gives reports whether the record of a wait is whole, and its answer gave the permission that the journal has.
func gives(record *journal.WaitRecord, p *session.Permission) bool {
	if record == nil || record.Wait.ID != p.ID || record.State != session.WaitTaken || record.Answer == nil || record.Answer.Standing == nil || journal.SealOf(record) != journal.SealWhole {
		return false
	}
	has, err := json.Marshal(record.Answer.Standing)
	is, other := json.Marshal(p.Standing)
	return err == nil && other == nil && bytes.Equal(has, is)
}
