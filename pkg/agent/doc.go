// Package agent is what agents are written in: an agent's definition, its planner, the registry that finds every mistake.
//
// An [Agent] names a model or brings a [Planner] of its own. [NewRegistry] checks
// all definitions at once; [Registry.Rules] writes down what a task is held to;
// [Registry.Planner] returns what plans its replies. A registry is wiring, not
// policy: a task under way is held to its stored rules.
package agent
