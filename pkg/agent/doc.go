// Package agent holds what a program defines its agents with: definitions, planners, and the registry that checks them.
//
// An [Agent] names a model or brings a [Planner] of its own. [NewRegistry] checks
// all definitions at once; [Registry.Rules] writes down what a task is held to;
// [Registry.Planner] returns what plans its replies. A registry changes
// nothing for a task under way: that one is held to its stored rules.
package agent
