package audit

import (
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/standing"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// covered are the calls that ran because a standing permission covers them.
func (r *records) covered() []session.AuditLine {
	var lines []session.AuditLine
	for i := range r.entries {
		e := &r.entries[i]
		for _, run := range e.Calls {
			if run.Permission == "" {
				continue
			}
			line := session.AuditLine{Kind: session.AuditCovered, At: run.At, Wait: run.Permission, Call: run.Call, Entry: e.Seq, Data: encoded(map[string]string{"digest": run.Digest})}
			if j := slices.IndexFunc(r.waits, func(w journal.WaitRecord) bool { return w.Wait.ID == run.Permission }); j >= 0 {
				line.Tool = r.waits[j].Wait.Tool
				if a := r.waits[j].Answer; a != nil {
					line.Who, line.From = a.Who, a.From
				}
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// graceOfStep is how long after a revocation a call may begin whose step began before it: the clocks of two
// machines differ, and calls of a step wait for each other.
const graceOfStep = time.Hour

// calledAs are the tool and the arguments with which a call was proposed.
type calledAs struct {
	tool      string
	arguments []byte
}

// given is a standing permission as the journal has it.
type given struct {
	wait   session.Wait
	answer session.Answer
	// over says that a later entry made it void.
	over bool
}

// permissions checks that each call that ran because of a standing permission ran under one that the session
// had then, for its tool, before it ended and before it was revoked.
func (c *checker) permissions() {
	perms, waits, calls := map[string]*given{}, map[string]session.Wait{}, map[string]calledAs{}
	for i := range c.entries {
		e := &c.entries[i]
		for _, w := range e.Waits {
			waits[w.ID] = w
		}
		if e.Base != nil {
			end(perms)
		}
		for _, a := range e.Answers {
			if a.Standing != nil && e.Base == nil {
				perms[a.Wait] = &given{wait: waits[a.Wait], answer: a}
			}
		}
		for _, m := range e.Messages {
			for _, call := range m.ToolCalls() {
				calls[call.ID] = calledAs{call.Name, call.Arguments}
			}
		}
		for _, run := range e.Calls {
			if run.Permission != "" {
				c.ranUnder(e, run, perms[run.Permission], calls[run.Call])
			}
		}
		if e.Status == session.StatusFailed || e.Status == session.StatusCancelled {
			end(perms)
		}
	}
}

func end(perms map[string]*given) {
	for _, p := range perms {
		p.over = true
	}
}

// ranUnder checks one such call.
func (c *checker) ranUnder(e *journal.Entry, run journal.ToolRun, p *given, call calledAs) {
	name := "call " + run.Call
	switch {
	case p == nil || p.answer.Approved == nil || !*p.answer.Approved:
		c.fault(name, "entry %d says that it ran under permission %s, which nobody had given", e.Seq, run.Permission)
		return
	case p.over:
		c.fault(name, "entry %d says that it ran under permission %s, which had ended with an entry before", e.Seq, run.Permission)
	case !run.At.Before(p.answer.Standing.Until):
		c.fault(name, "entry %d says that it ran under permission %s at %s, when that had ended", e.Seq, run.Permission, run.At)
	case call.tool != "" && call.tool != p.wait.Tool:
		c.fault(name, "entry %d says that it ran under permission %s, which is for %s", e.Seq, run.Permission, p.wait.Tool)
	case call.tool != "" && journal.Digest(call.arguments) == run.Digest && !standing.Covers(p.answer.Standing.Conditions, p.wait.Arguments, call.arguments):
		c.fault(name, "entry %d says that it ran under permission %s, which does not cover its arguments", e.Seq, run.Permission)
	}
	for i := range c.waits {
		r := &c.waits[i]
		if r.Wait.ID == run.Permission && r.Revoked != nil && run.At.After(r.Revoked.At.Add(graceOfStep)) {
			c.fault(name, "entry %d says that it ran under permission %s at %s, long after that was revoked", e.Seq, run.Permission, run.At)
		}
	}
}
