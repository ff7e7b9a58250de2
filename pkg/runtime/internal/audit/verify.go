package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// checker gathers what is wrong.
type checker struct {
	*records
	out session.AuditCheck
}

func (c *checker) fault(record, what string, args ...any) {
	c.out.Faults = append(c.out.Faults, session.AuditFault{Record: record, Fault: fmt.Sprintf(what, args...)})
}

func (c *checker) unproven(record, what string) {
	c.out.Unproven = append(c.out.Unproven, session.AuditFault{Record: record, Fault: what})
}

// verify compares the records with each other.
func (r *records) verify() session.AuditCheck {
	c := &checker{records: r}
	c.out.Faults = slices.Clone(r.unread)
	c.journal()
	if r.head.Status != "" { // else it could not be read
		c.headRecord()
	}
	for i := range r.waits {
		c.wait(&r.waits[i])
	}
	c.missing()
	for i := range r.tools {
		c.call(&r.tools[i])
	}
	c.approved()
	c.permissions()
	c.runRecords()
	for i := range r.mails {
		c.seal("mail "+r.mails[i].ID, &r.mails[i])
	}
	c.out.Entries, c.out.Waits = len(r.entries), len(r.waits)
	for _, lines := range r.lines {
		c.out.Lines += len(lines)
	}
	c.out.Whole = len(c.out.Faults) == 0
	return c.out
}

// seal says what the seal of a record does.
func (c *checker) seal(name string, record any) {
	switch journal.SealOf(record) {
	case journal.SealBroken:
		c.fault(name, "it was changed after it was written")
	case journal.SealNone:
		if journal.HasUnknown(record) {
			c.fault(name, "it has no seal, and a field that this program does not know: it was changed, or a newer program wrote it")
			return
		}
		c.unproven(name, "a program without seals wrote it, or its seal was removed: it is only compared with the journal")
	case journal.SealWhole:
	}
}

// journal checks the chain of the entries and that they are a journal. HEAD vouches for the newest.
func (c *checker) journal() {
	if len(c.unread) > 0 && len(c.entries) == 0 {
		return
	}
	if len(c.entries) == 0 {
		c.fault("entry 1", "there is none")
		return
	}
	for i := 1; i < len(c.entries); i++ {
		if e := &c.entries[i]; e.Prev != c.entries[i-1].Hash {
			c.fault(entryName(e.Seq-1), "its hash is not the one that entry %d holds: one of the two was changed", e.Seq)
		}
	}
	if len(c.out.Faults) > 0 {
		return
	}
	if _, err := engine.Fold(c.key, c.entries); err != nil {
		c.fault(entryName(int64(len(c.entries))), "the entries are no journal: %v", err)
	}
}

func (c *checker) headRecord() {
	h, n := &c.head, int64(len(c.entries))
	named := h.Newest.Seq > 0
	if named || journal.SealOf(h) == journal.SealBroken {
		c.seal("head", h)
	}
	if seq := max(h.StatusSeq, h.Newest.Seq, h.WaitsAt, h.Lease.Seq-1); seq > n {
		c.fault("head", "it tells of entry %d, and the journal ends at %d: its end was cut off", seq, n)
	}
	if e := c.entry(h.Newest.Seq); named && e != nil && e.Hash != h.Newest.Hash {
		c.fault(entryName(e.Seq), "its hash is not the one that HEAD holds: one of the two was changed")
	}
	newest := c.entry(n)
	if newest == nil {
		return
	}
	switch {
	case named && h.Newest.Seq == n:
	case newest.Status.Resting() && named:
		c.fault("head", "it names entry %d as the newest, and entry %d is", h.Newest.Seq, n)
	case newest.Status.Resting():
		c.unproven(entryName(n), "a program without seals wrote it, or HEAD was changed: no record holds the hash of this newest entry")
	default:
		c.unproven(entryName(n), "the session is at work, and no record holds the hash of its newest entry before the next one is written")
	}
	first, rules := &c.entries[0], c.rulesOf(newest)
	if h.Status != newest.Status || h.Task != newest.Task || h.StartedBy != first.By || !h.CreatedAt.Equal(first.At) || rules != nil && h.Agent != rules.Agent {
		c.fault("head", "its status, task, agent, author or beginning is not that of the journal")
	}
}

// wait checks the record of a wait against its lines, the entry that opened it and the one that took it in.
func (c *checker) wait(r *journal.WaitRecord) {
	w, name := &r.Wait, "wait "+r.Wait.ID
	if journal.LostSeal(r) {
		c.fault(name, "its seal was removed: a wait with a rule is never written without")
	} else {
		c.seal(name, r)
	}
	for i := range c.lines[w.ID] {
		if line := &c.lines[w.ID][i]; journal.SealOf(line) == journal.SealBroken { // without a seal the chain says it
			c.seal(fmt.Sprintf("line %d of %s", line.N, w.ID), line)
		}
	}
	if err := journal.CheckAudit(c.key, w.ID, c.lines[w.ID], r.Audit); err != nil {
		c.fault("lines of "+w.ID, "%s", strings.TrimPrefix(err.Error(), journal.ErrBrokenAudit.Error()+": "))
	}
	opened := c.entry(openedAt(w.ID))
	i := -1
	if opened != nil {
		i = slices.IndexFunc(opened.Waits, func(o session.Wait) bool { return o.ID == w.ID })
	}
	switch {
	case i < 0:
		c.fault(name, "no entry opened it")
	case !stored.AsOpened(opened.Waits[i], r):
		c.fault(name, "it does not ask what entry %d asked", opened.Seq)
	}
	if w.Digest != "" && w.Digest != journal.Digest(w.Arguments) {
		c.fault(name, "its digest is not that of its arguments")
	}
	c.outcome(name, r)
}

// outcome checks what became of a wait.
func (c *checker) outcome(name string, r *journal.WaitRecord) {
	var takenBy *journal.Entry
	for i := range c.entries {
		if answerIn(&c.entries[i], r.Wait.ID) != nil {
			takenBy = &c.entries[i]
		}
	}
	switch r.State {
	case session.WaitOpen, session.WaitAnswered, session.WaitExpired:
		if takenBy != nil {
			c.fault(name, "it is %s, and entry %d took its answer in", r.State, takenBy.Seq)
		}
		if (r.Answer == nil) != (r.State == session.WaitOpen) || r.TakenBy != 0 {
			c.fault(name, "it is %s, and the rest of its record says otherwise", r.State)
		}
	case session.WaitClosed:
		if takenBy != nil || c.entry(r.TakenBy) == nil {
			c.fault(name, "it is closed, and the journal says otherwise")
		}
	case session.WaitTaken:
		if takenBy == nil || r.Answer == nil || takenBy.Seq != r.TakenBy {
			c.fault(name, "it is taken by entry %d, and the journal says otherwise", r.TakenBy)
		}
	default:
		c.fault(name, "its state is %q", r.State)
	}
	if takenBy == nil || r.Answer == nil {
		return
	}
	in := answerIn(takenBy, r.Wait.ID)
	if !sameAnswer(*r.Answer, *in) {
		c.fault(name, "its answer is not the one that entry %d took in", takenBy.Seq)
	}
	if in.Audit != "" && !slices.ContainsFunc(c.lines[r.Wait.ID], func(l journal.Audit) bool { return l.Hash() == in.Audit }) {
		c.fault("lines of "+r.Wait.ID, "the line is not there, or was changed, that was the last when entry %d took the answer in", takenBy.Seq)
	}
}

// sameAnswer reports whether an entry took in the answer of a record. Of one that was too large for it the
// entry says so, and keeps who gave it.
func sameAnswer(given, in session.Answer) bool {
	in.Audit = ""
	if in.Error != "" && given.Error == "" {
		return in.Who == given.Who && in.From == given.From && in.When.Equal(given.When) && in.Kind == given.Kind
	}
	left, err := json.Marshal(given)
	right, other := json.Marshal(in)
	return err == nil && other == nil && bytes.Equal(left, right)
}

// missing checks that what the journal and the lines tell of is there.
func (c *checker) missing() {
	there := map[string]bool{}
	for i := range c.waits {
		there[c.waits[i].Wait.ID] = true
	}
	told := map[string]string{}
	for i := range c.entries {
		for _, w := range c.entries[i].Waits {
			told[w.ID] = entryName(c.entries[i].Seq)
		}
	}
	for wait := range c.lines {
		told[wait] = "its lines"
	}
	for _, wait := range slices.SortedFunc(maps.Keys(told), func(a, b string) int { return stored.CompareWaits(session.Wait{ID: a}, session.Wait{ID: b}) }) {
		if !there[wait] {
			c.fault("wait "+wait, "there is no record of it, and %s tell of it", told[wait])
		}
	}
}

// call checks the ledger of a call against the result that the journal has.
func (c *checker) call(t *journal.ToolRecord) {
	name := "call " + t.Call
	c.seal(name, t)
	seq, _, _ := strings.Cut(strings.TrimPrefix(t.Call, "c"), "-")
	if n, err := strconv.ParseInt(seq, 10, 64); err != nil || n > int64(len(c.entries)) {
		c.fault(name, "the journal ends before the entry that asked for it: its end was cut off")
	}
	if t.State != journal.ToolFinished || t.Result == nil {
		return
	}
	for i := range c.entries {
		for _, m := range c.entries[i].Messages {
			for _, p := range m.Parts {
				got := p.ToolResult
				if got == nil || got.CallID != t.Call || got.Status != llm.ResultSuccess || t.Result.Status != llm.ResultSuccess {
					continue
				}
				if journal.Digest(got.Output) != journal.Digest(t.Result.Output) {
					c.fault(name, "its result is not the one that entry %d has", c.entries[i].Seq)
				}
			}
		}
	}
}

// allowedBy reports whether rules have the policy of a program that lets a call run without an approval.
func (c *checker) allowedBy(rules *session.Rules, call string) bool {
	return rules != nil && rules.PolicyAllows(c.toolOf(call))
}

// approved checks that what ran after an approval ran with the arguments that were approved, and what ran
// without one because a policy allowed it did so under rules that have that policy.
func (c *checker) approved() {
	digests := map[string]string{}
	for i := range c.entries {
		e := &c.entries[i]
		for _, a := range e.Answers {
			if a.Approved != nil && *a.Approved && a.Digest != "" {
				digests[a.ToolCallID] = a.Digest
			}
		}
		for _, run := range e.Calls {
			if run.ByPolicy && !c.allowedBy(c.rulesOf(e), run.Call) {
				c.fault("call "+run.Call, "entry %d says that a policy allowed it without an approval, and the rules of its task do not", e.Seq)
			}
			if digest, ok := digests[run.Call]; ok && run.Digest != digest {
				c.fault("call "+run.Call, "entry %d says that it ran with other arguments than those that were approved", e.Seq)
			}
		}
	}
}

// runRecords checks the records of runs against the journal.
func (c *checker) runRecords() {
	var runs []session.Run
	for i := range c.entries {
		e := &c.entries[i]
		if len(runs) == 0 || runs[len(runs)-1].ID != e.Run {
			runs = append(runs, session.Run{ID: e.Run, Task: e.Task, Trigger: e.Trigger, StartedAt: e.At, FirstEntry: e.Seq, PreviousRun: e.Run - 1})
		}
		run := &runs[len(runs)-1]
		if run.EndedAt == nil {
			run.Usage = run.Usage.Add(e.Usage)
			if e.Status.Resting() {
				at := e.At
				run.Status, run.EndedAt, run.LastEntry = e.Status, &at, e.Seq
			}
		}
	}
	for i := range c.runs {
		c.seal(runName(c.runs[i].ID), &c.runs[i])
	}
	for i := range runs {
		want := &runs[i]
		at := slices.IndexFunc(c.runs, func(r session.Run) bool { return r.ID == want.ID })
		if at < 0 {
			c.fault(runName(want.ID), "there is no record of it, and %s began it", entryName(want.FirstEntry))
			continue
		}
		got := &c.runs[at]
		same := got.Task == want.Task && got.Trigger == want.Trigger && got.StartedAt.Equal(want.StartedAt) && got.FirstEntry == want.FirstEntry && got.PreviousRun == want.PreviousRun &&
			(got.EndedAt == nil) == (want.EndedAt == nil)
		if same && want.EndedAt != nil {
			same = got.Status == want.Status && got.EndedAt.Equal(*want.EndedAt) && got.LastEntry == want.LastEntry && got.Usage == want.Usage
		}
		if !same {
			c.fault(runName(want.ID), "its record is not what the journal says")
		}
	}
	if len(c.runs) > len(runs) {
		c.fault(runName(c.runs[len(runs)].ID), "the journal has no such run: its end was cut off")
	}
}

func entryName(seq int64) string { return fmt.Sprintf("entry %d", seq) }
func runName(id int64) string    { return fmt.Sprintf("run %d", id) }

// openedAt is the seq of the entry that opened a wait.
func openedAt(wait string) int64 {
	seq, _ := stored.WaitNumbers(wait)
	return seq
}
