package main

import (
	"github.com/adjourn/adjourn/model/internal/search"
)

// The smaller models: what the chain's has no room for, each for itself.

// smallTexts say what their broken properties mean.
var smallTexts = map[string]string{
	"held":     "a session is driven on although its last answer was only to be stored",
	"alone":    "one person decided what needs two",
	"overrule": "votes that decide were accepted, and the wait expired",
	"early":    "a wait expired before the deadline that somebody was told of",
	"ends":     "a wait was answered and expired, or either twice",
	"again":    "one request acted twice",
	"later":    "a request that had been answered acted on a later task",
	"old":      "the result of a child left behind reaches a later task",
	"orphan":   "a child runs whose parent never came to wait for it",
	"unheard":  "a child ended and its parent's wait is open",
}

func smallModels() []search.Model {
	var all []search.Model
	all = append(all, heldModels()...)
	all = append(all, voteModels()...)
	all = append(all, deadlineModels()...)
	all = append(all, keyModels()...)
	all = append(all, familyModels()...)
	return append(all, dispatchModels()...)
}
