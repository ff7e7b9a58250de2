package session_test

import (
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
)

// Where a session stands, what it waits for, what is left of its limits.
func Example() {
	s := session.Session{
		Key: session.Key{Tenant: session.DefaultTenant, ID: "ticket-1"}, Status: session.StatusSuspended,
		Rules: session.Rules{Agent: "support", Limits: session.Limits{Steps: 50}},
		Used:  session.Amounts{Steps: 3},
		Waits: []session.Wait{{ID: "w3-1", Kind: session.WaitApproval, Tool: "refund"}},
	}
	fmt.Println(s.Key, s.Status, s.Status.Resting(), s.Status.Ended())
	fmt.Println(s.Waits[0].ID, s.Waits[0].Kind, s.Waits[0].Tool)
	fmt.Println(s.Left().Steps, s.Status.CanBecome(session.StatusRunning))
	// Output:
	// default/ticket-1 suspended true false
	// w3-1 approval refund
	// 47 true
}
