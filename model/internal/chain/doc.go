// Package chain is the chain's protocol as a model: what there is, who may move, what must not be.
//
// Read state.go (what there is), next.go (who may move), receive.go and work.go
// (a worker), verbs.go (everybody else) and properties.go (what must not be).
package chain
