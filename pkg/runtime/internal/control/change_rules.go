package control

import (
	"context"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
)

// ChangeRules returns what has a move change the rules of its task as a caller asks; a caller who
// asks for nothing changes nothing.
func (c *Control) ChangeRules(ctx context.Context, s *session.Session, asked session.TaskRules) (func(*engine.Move), error) {
	if asked.IsZero() {
		return func(*engine.Move) {}, nil
	}
	rules, err := c.cfg.Rules(ctx, s.Rules.Agent, asked)
	if err != nil {
		return nil, err
	}
	return func(m *engine.Move) { m.ChangeRules(s, rules, asked) }, nil
}

// KeepsRules refuses to change what a task is held to where no entry could say so.
func KeepsRules(key session.Key, status session.Status) error {
	return refusal.At(codes.NotResumable, key, status, "it is %s, and what its task is held to changes where it was interrupted: interrupt it, then resume it with the rules", status)
}
