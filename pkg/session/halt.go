package session

import (
	"strings"
	"time"
)

// Halt is a stored order that no step begins: of the sessions of one agent, of one tenant, or of
// all there are. It is the kill switch. Nothing is lost by it: what is answered and started
// meanwhile is stored, and the sessions go on when it is lifted.
type Halt struct {
	// Tenant whose sessions it holds; empty means every tenant.
	Tenant string `json:"tenant,omitempty"`
	// Agent whose sessions it holds; empty means every agent.
	Agent string `json:"agent,omitempty"`
	// ByOperator says that whoever runs the program set it. A caller of the tenant lifts only what
	// callers of the tenant have set.
	ByOperator bool `json:"byOperator,omitempty"`
	// Reason, in the words of who set it; shown to whoever it holds up.
	Reason string `json:"reason,omitempty"`
	// Who set it, from where, and when.
	Who  string    `json:"who,omitempty"`
	From string    `json:"from,omitempty"`
	At   time.Time `json:"at"`
}

// Holds reports whether the sessions of an agent of a tenant do no step because of it.
func (h *Halt) Holds(tenant, agent string) bool {
	return (h.Tenant == "" || h.Tenant == tenant) && (h.Agent == "" || h.Agent == agent)
}

// Same reports whether both hold the same sessions, and were set from the same side.
func (h *Halt) Same(other Halt) bool {
	return h.Tenant == other.Tenant && h.Agent == other.Agent && h.ByOperator == other.ByOperator
}

// Scope says in words whose steps it stops.
func (h *Halt) Scope() string {
	var words []string
	if h.Agent != "" {
		words = append(words, "agent "+h.Agent)
	}
	if h.Tenant != "" {
		words = append(words, "tenant "+h.Tenant)
	}
	if len(words) == 0 {
		return "everything"
	}
	return strings.Join(words, " of ")
}
