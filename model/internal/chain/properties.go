package chain

import (
	"github.com/adjourn/adjourn/model/internal/rules"
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
)

// What must never be. Some can be seen of a state, most only of the move that
// makes it so: that one notes it in state.bad.
const (
	forbidden = 1 << iota
	unanswered
	undone
	twice
	lies
	unlisted
	unapproved
	overlap
	needless
	hasty
	denied
	passedOver
	sleeps
	mailLeft
	forgotten
	unclaimed
	wasteful
	waited
	storm
	healthy
	unending
	afterDelete
	runDeleted
	dangling
	heldUp
	keptShort
)

var propertyNames = []string{
	"forbidden", "unanswered", "undone", "twice", "lies", "unlisted", "unapproved", "overlap", "needless", "hasty", "denied", "passed over",
	"sleeps", "mail", "forgotten", "unclaimed", "wasteful", "waited", "storm", "healthy", "unending", "after delete", "run deleted", "dangling", "halted", "kept short",
}

// Texts say what a broken property means.
var Texts = map[string]string{
	"forbidden":    "an entry after one that its status does not allow",
	"unanswered":   "a suspended session went on with a wait open",
	"undone":       "an interrupted session went on and nobody had said continue",
	"twice":        "an effect of one call twice",
	"lies":         "history tells that a call did not run, and it took effect",
	"unlisted":     "an effect of a call left behind that who went back was not shown",
	"unapproved":   "a call began that nobody approved, or that is not the current one",
	"overlap":      "a tool declared at-least-once began though its worker's clock said that the lease had run out",
	"needless":     "an outcome is told as unknown though nothing failed",
	"hasty":        "an outcome is told as unknown while the worker that started it holds the lease",
	"denied":       "a call ends as not run, by a verb that was refused",
	"passed over":  "a signal was accepted, and the task ended or was put off without it",
	"sleeps":       "an accepted signal sleeps where nobody works",
	"mail":         "mail is left behind where a session rests",
	"forgotten":    "an answer was accepted and never taken in",
	"unclaimed":    "a worker works without the lease",
	"wasteful":     "the planner is asked twice for one entry though nothing failed",
	"waited":       "a step waits for a lease though nothing failed",
	"storm":        "a duplicate multiplies",
	"healthy":      "dead letters failed a session whose workers had not died that often",
	"unending":     "the sweep finds a resting session again and again",
	"after delete": "an entry was written after delete",
	"run deleted":  "a call began after delete",
	"dangling":     "a call has no result, and its task went past it",
	"halted":       "a step began while a halt held the session",
	"kept short":   "retention deleted a session whose next task had begun",
}

// broken returns what is broken in a state.
func (c *chain) broken(s *state) uint32 {
	b := s.bad
	for i, n := range s.effects {
		if n > 1 && c.world.Policy != session.UnknownRetry {
			b |= twice
		}
		if n > 0 && s.said[i] == saidNotRun {
			b |= lies
		}
		if n > 0 && s.left&^s.listed&(1<<i) != 0 {
			b |= unlisted
		}
	}
	if s.heard() != 0 && (s.suspended() || s.interrupted()) {
		b |= sleeps
	}
	if s.running() && stronger(s.accepted, s.heard()) && !c.heldBy(s, s.accepted) {
		b |= passedOver
	}
	if s.status().Resting() && !s.gone() && s.taken < s.mail {
		b |= mailLeft
	}
	if s.made > 0 && s.said[s.call] == saidNothing && (s.phase == noCall || s.status().Ended() && toRun(s.phase)) {
		b |= dangling
	}
	if !s.gone() {
		b |= c.forgot(s)
	}
	if c.world.Economy && !s.faulty {
		for _, m := range s.queue {
			if m.at == keptFor && m.kind == step {
				b |= waited
			}
		}
	}
	return b
}

// heldBy reports whether a worker is about to obey a signal that strong.
func (c *chain) heldBy(s *state, signal uint8) bool {
	for _, w := range s.workers {
		if w.signal == signal {
			return true
		}
	}
	return false
}

// forgot looks for an answer that was accepted, not taken in, and never will be.
func (c *chain) forgot(s *state) uint32 {
	for g, waits := range s.waits {
		still := int(s.gen) == g+1 && s.phase == waiting && (s.suspended() || s.interrupted())
		for i, w := range waits {
			if (w == waitAnswered || w == waitDenied) && s.took[g]&(1<<i) == 0 && !still {
				return forgotten
			}
		}
	}
	return 0
}

// rest: a session may stay like this for ever. It has ended, is interrupted, or
// waits for somebody; and no verb is half done.
func (c *chain) rest(s *state) bool {
	for _, v := range s.verbs {
		if v.at != verbNotYet && v.at != verbDone {
			return false
		}
	}
	if s.remains || s.expired || s.overdue != 0 {
		return false
	}
	if s.halted && c.world.HaltStays && s.heard() == 0 && s.workers == [workers]worker{} {
		return true
	}
	return s.gone() || s.status().Ended() || s.interrupted() || s.suspended() && s.open()
}

// Model is a configuration of the chain: what there is in it, and the rules that are on.
// breaks names the properties that must break in it; none: everything must hold.
func Model(name string, breaks []string, w World, on rules.Rules) search.Model {
	c := &chain{world: w, rules: on}
	return &search.Space[state]{
		Name: name, Breaks: breaks, First: c.first(), Next: c.next, Broken: c.broken, Properties: propertyNames,
		Rest: c.rest, Cut: func(s *state) bool { return s.over }, Show: c.show,
	}
}
