package halts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// maxHalts is how many callers may set together: every process reads all of them. Whoever
	// runs the program is not held to it.
	maxHalts = 1000
	// maxTries is how often a change is tried while others change the record too.
	maxTries = 20
)

// Params say whose steps are to stop, or to go on.
type Params struct {
	// Tenant and Agent whose sessions are meant; empty means every one.
	Tenant, Agent string
	// Reason is kept with a halt, and shown to whoever it holds up; optional.
	Reason string
	// Operator says that whoever runs the program asks. Anybody else names a tenant, his own, and
	// lifts only what callers of the tenant have set.
	Operator bool
	// Who asks, and from where.
	Who, From string
}

// Halted is the result of a halt.
type Halted struct {
	// Halt as it is stored.
	Halt session.Halt
	// Already says that it was there before: that one stays, with its reason.
	Already bool
}

// Lifted is the result of lifting a halt.
type Lifted struct {
	// Halts that were lifted; none where there were none to lift.
	Halts []session.Halt
	// Left are those that still hold sessions of what was to go on.
	Left []session.Halt
}

// Set stops the steps of what p says: none begins two seconds later, in any process.
func (h *Halts) Set(ctx context.Context, p Params) (Halted, error) {
	if err := h.check(p, true); err != nil {
		return Halted{}, err
	}
	at := h.cfg.Now().UTC()
	out := Halted{Halt: session.Halt{Tenant: p.Tenant, Agent: p.Agent, ByOperator: p.Operator, Reason: p.Reason, Who: p.Who, From: p.From, At: at}}
	err := h.change(ctx, func(halts []session.Halt) ([]session.Halt, error) {
		if i := slices.IndexFunc(halts, func(there session.Halt) bool { return there.Same(out.Halt) }); i >= 0 {
			// Unless it is that of an earlier try of this very call, whose answer was lost.
			out.Already = !halts[i].At.Equal(at) || halts[i].Who != p.Who || halts[i].Reason != p.Reason
			out.Halt = halts[i]
			return halts, nil
		}
		if len(halts) >= maxHalts && !p.Operator {
			return nil, refusal.New(codes.InvalidInput, session.Key{}, "there are %d halts, and callers may set no more: ask whoever runs the program", len(halts))
		}
		return append(slices.Clone(halts), out.Halt), nil
	})
	return out, err
}

// Lift lets the steps of what p says go on: it takes away the halts of just that scope.
func (h *Halts) Lift(ctx context.Context, p Params) (Lifted, error) {
	if err := h.check(p, false); err != nil {
		return Lifted{}, err
	}
	var out Lifted
	err := h.change(ctx, func(halts []session.Halt) ([]session.Halt, error) {
		var kept []session.Halt
		lifted := Lifted{}
		for _, halt := range halts {
			switch {
			case halt.Tenant == p.Tenant && halt.Agent == p.Agent && (p.Operator || !halt.ByOperator):
				lifted.Halts = append(lifted.Halts, halt)
				continue
			case overlap(halt.Tenant, p.Tenant) && overlap(halt.Agent, p.Agent):
				lifted.Left = append(lifted.Left, halt)
			}
			kept = append(kept, halt)
		}
		if len(lifted.Halts) > 0 || len(out.Halts) == 0 { // else an earlier try of this call has lifted them
			out.Halts = lifted.Halts
		}
		out.Left = lifted.Left
		return kept, nil
	})
	return out, err
}

// overlap reports whether two scopes have something in common; empty is all there is.
func overlap(a, b string) bool { return a == b || a == "" || b == "" }

// List returns the halts that hold sessions of a tenant, of all where it is "", as they are now.
func (h *Halts) List(ctx context.Context, tenant string) ([]session.Halt, error) {
	halts, _, err := h.load(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(halts), func(halt session.Halt) bool { return !overlap(halt.Tenant, tenant) }), nil
}

// check refuses what nobody may ask, or what would stop nothing.
func (h *Halts) check(p Params, sets bool) error {
	if p.Tenant == "" && !p.Operator {
		return refusal.New(codes.NotAllowed, session.Key{}, "only whoever runs the program stops every tenant, or lets every tenant go on")
	}
	if err := refusal.CheckReason(session.Key{}, p.Reason); err != nil {
		return err
	}
	if p.Tenant != "" {
		if err := store.ValidateTenant(p.Tenant); err != nil {
			return err
		}
	}
	if _, ok := h.cfg.Registry.Agent(p.Agent); !sets || p.Agent == "" || ok || h.cfg.Registry.Withheld(p.Agent) {
		return nil // what this program does not know may still be lifted
	}
	return refusal.New(codes.UnknownAgent, session.Key{}, "there is no agent %q, so nothing would stop; there are %s", p.Agent, strings.Join(h.cfg.Registry.Names(), ", "))
}

// change writes what the function makes of the halts, unless nothing changes. This process knows
// the result at once.
func (h *Halts) change(ctx context.Context, change func([]session.Halt) ([]session.Halt, error)) error {
	for range maxTries {
		began := h.wall()
		before, item, err := h.load(ctx)
		if err != nil {
			return err
		}
		after, err := change(before)
		if err != nil {
			return err
		}
		if !slices.Equal(before, after) {
			err = h.write(ctx, item, after)
		}
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		h.know(after, began)
		return nil
	}
	return &refusal.Error{Code: codes.StoreUnavailable, Message: "the halts were changed by others each time. Try again", Cause: store.ErrConflict}
}

func (h *Halts) write(ctx context.Context, item store.Item, halts []session.Halt) error {
	value, err := json.Marshal(record{Halts: halts})
	if err != nil {
		return fmt.Errorf("halts: %w", err)
	}
	changed := journal.TenantRecord{Name: recordName}
	if item.TenantRecord != nil {
		changed = *item.TenantRecord
	}
	changed.Value = value
	if _, err := h.cfg.Store.Update(ctx, everywhere, store.TenantItem(changed, item.Rev)); err != nil {
		return fmt.Errorf("write halts: %w", err)
	}
	return nil
}

// know takes over what was written, as of a time before that.
func (h *Halts) know(halts []session.Halt, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.readAt, h.changed = halts, at, true
}
