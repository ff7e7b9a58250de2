package client

import "github.com/adjourn/adjourn/pkg/session"

// Problem is the body of every answer that is an error (RFC 9457,
// application/problem+json). Clients branch on Code, which is stable;
// [Error] has it.
type Problem struct {
	// Type is urn:adjourn:problem: with the code.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is for people: what, where, what to do.
	Detail string `json:"detail"`
	Code   string `json:"code"`
	// SessionID is the session it is about.
	SessionID string `json:"sessionId,omitempty"`
	// SessionStatus when the session's state was the reason.
	SessionStatus session.Status `json:"sessionStatus,omitempty"`
	// Answer that came first, of already_answered.
	Answer *session.Answer `json:"answer,omitempty"`
	// Effects that were done, of effects_not_acknowledged.
	Effects *session.EffectsDone `json:"effects,omitempty"`
	// Results of all answers of a request of which some were refused.
	Results []AnswerResult `json:"results,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// RequestID finds what happened in the server's log; on 5xx.
	RequestID string `json:"requestId,omitempty"`
}

// ProblemType is what Type begins with.
const ProblemType = "urn:adjourn:problem:"
