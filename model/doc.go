// Command model searches every state of the chain's protocol for one that must not be.
//
// It is an explicit-state model of docs/design/chain.md: one session,
// two workers that crash or freeze between any two atomic actions, a queue that
// duplicates, reorders and loses visibility, the sweep, the dead letters, people
// who answer at once, and the verbs. A configuration says how much of that there
// is and which rules of the design are switched off. With all rules on everything
// must hold; with one switched off the harm it prevents must come, or the model
// does not see what the rule is for.
//
// The model speaks the program's words and, where the program is pure, calls it:
// what a message asks for is [engine.Dispatch]'s to say, who gets a lease
// [store.ClaimParams.Grant]'s, whether one still stands [journal.Lease.Live]'s. A
// change there is a change here.
//
// Here stand the configurations (configs.go, configs_verbs.go) and the smaller models:
// stored_answers.go, votes.go, deadline.go, idempotency.go, child.go and dispatch.go. The chain is in
// internal/chain, what can be switched off in internal/rules, the search in
// internal/search.
package main
