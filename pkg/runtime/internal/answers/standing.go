package answers

import (
	"context"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/standing"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// maxStandingBytes bounds a permission, so that the answer that gives it is always taken in whole.
const maxStandingBytes = engine.SmallAnswer / 2

// checkStanding refuses a standing permission that the answer to a wait may not give, and says when it ends.
func (c *Checker) checkStanding(key session.Key, record journal.WaitRecord, a *session.Answer, by Caller) error {
	if a.Standing == nil {
		return nil
	}
	w := record.Wait
	if by.ByLink || by.Unverified || by.NotSignedIn || by.Who == "" {
		return refusal.New(codes.SignInRequired, key, "%s: a standing permission is given by who has signed in only", Label(w))
	}
	if person := standsFor(record, by); person != "" {
		return refusal.New(codes.NotAllowed, key, "%s: who stands in for %q gives no standing permission, which may last for longer than they are away", Label(w), person)
	}
	if person := InPlaceOf(record, by); person != "" {
		return refusal.New(codes.NotAllowed, key, "%s: %q has delegated this one call, and a standing permission lets later ones run: approve without it, or leave it to them", Label(w), person)
	}
	switch {
	case w.Kind != session.WaitApproval || a.Approved == nil || !*a.Approved:
		return errors.New("a standing permission goes with an approval")
	case a.EditedInput != nil:
		return errors.New("a standing permission does not go with edited input: approve what is shown, or edit without it")
	case w.Votes():
		return errors.New("several people decide about it, so that one of them gives no standing permission")
	case w.Preview != nil && w.Preview.Risk == session.RiskHigh:
		return errors.New("its risk is high, so that each call is asked for: no standing permission covers it")
	}
	t, ok := c.cfg.Registry.Tool(record.Agent, w.Tool)
	switch {
	case !ok:
		return fmt.Errorf("the tool %q is not in this program, so a standing permission cannot be checked", w.Tool)
	case t.Standing() == 0:
		return fmt.Errorf("the tool %q takes no standing permission: its definition does not say so (Standing)", w.Tool)
	}
	if onlyEscalated(record, t, by) {
		return refusal.New(codes.NotAllowed, key, "%s: who may answer only since its deadline has passed gives no standing permission: the next calls are for those who are asked first", Label(w))
	}
	own := *a.Standing
	var err error
	if own.Until, err = standing.Until(own, a.When, t.Standing()); err != nil {
		return err
	}
	if engine.EncodedSize(own) > maxStandingBytes {
		return fmt.Errorf("the conditions have more than %d bytes", maxStandingBytes)
	}
	a.Standing = &own
	return standing.Check(own, w.Arguments)
}

// onlyEscalated reports whether a wait was escalated to a caller, whom its tool does not ask first.
func onlyEscalated(record journal.WaitRecord, t tool.Tool, by Caller) bool {
	first := session.Wait{Who: t.Who(), Rule: t.Rule()}
	return session.Escalated(record.Acts) && !first.IsNamed(by.Who, by.Roles)
}

// CheckStanding returns the permission that an answer would give, complete.
func (c *Checker) CheckStanding(ctx context.Context, key session.Key, record journal.WaitRecord, given session.Standing, by Caller) (session.Standing, error) {
	by, err := c.StandingIn(ctx, key, record, by)
	if err != nil {
		return session.Standing{}, err
	}
	yes := true
	a := session.Answer{Kind: session.AnswerApproval, Approved: &yes, ApprovalID: record.Wait.Nonce, Standing: &given}
	checked, err := c.Check(key, record, a, by)
	if err != nil {
		return session.Standing{}, err
	}
	return *checked.Standing, nil
}
