package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Decide decides approvals of a suspended session and goes on. Approvals of this
// suspension that are not named are rejected; other kinds of wait stay open. The
// same decisions taken again change nothing; different ones are refused.
//
// All approvals are answered by one write or none is: a suspension opens at most
// [session.MaxWaits], and one write takes more. So of two decisions that cross, or
// a decision and an answer, the first counts and the other changes nothing.
func (r *Runtime) Decide(ctx context.Context, p DecideParams) (Resumed, error) {
	out, err := r.decide(ctx, p)
	if err != nil {
		return Resumed{}, AsError(err)
	}
	return out, nil
}

const _ = uint(store.MaxItems - session.MaxWaits) // does not compile where one write is too small

// decision is one approval with what is decided on it.
type decision struct {
	record   session.WaitRecord
	approved bool
	edited   json.RawMessage
	// current says that the approval belongs to the suspension the session is in.
	current bool
	settled bool
}

func (r *Runtime) decide(ctx context.Context, p DecideParams) (Resumed, error) {
	for try := 1; ; try++ {
		out, decided, err := r.decideOnce(ctx, p)
		if !errors.Is(err, store.ErrConflict) || try == maxTries {
			return out, err
		}
		p = p.naming(decided) // somebody was first: look who
	}
}

// decideOnce looks and writes. With a conflict it returns the decisions it was
// about to write.
func (r *Runtime) decideOnce(ctx context.Context, p DecideParams) (out Resumed, decided []decision, err error) {
	s, err := r.need(ctx, p.Key)
	if err != nil {
		return Resumed{}, nil, err
	}
	defer func() { r.keep(s) }()
	if p.ApproveAll && p.RejectAll {
		return Resumed{}, nil, refuse(CodeInvalidInput, p.Key, "approve all and reject all contradict each other")
	}
	since, err := r.checkpointSeq(ctx, s, p.Checkpoint)
	if err != nil {
		return Resumed{}, nil, err
	}
	items, err := r.items(ctx, p.Key, store.KindWait, "")
	if err != nil {
		return Resumed{}, nil, err
	}
	records := waitRecords(items)
	if decided, err = decisions(s, records, p, since); err != nil {
		return Resumed{}, nil, err
	}
	if out.Repeated, err = r.repeated(s, records, p, decided); err != nil {
		return Resumed{}, nil, err
	}
	if !out.Repeated {
		if err := isNewest(s, p.Checkpoint); err != nil {
			return Resumed{}, nil, err
		}
		if s.Status.Ended() {
			return Resumed{}, nil, notResumable(s)
		}
		decided = append(decided, unlisted(s, records, decided)...)
		answers, err := r.decisive(ctx, s, items, p, decided)
		if err != nil {
			return Resumed{}, decided, err
		}
		if _, err := r.cfg.Store.Update(ctx, p.Key, answers...); err != nil {
			return Resumed{}, decided, err
		}
	}
	out.Continuation, out.Open, err = r.goOn(ctx, s, false)
	return out, nil, err
}

// decisive returns the open waits of decisions with their answers, all of which
// may be given. They are given at one moment.
func (r *Runtime) decisive(ctx context.Context, s *session.Session, items []store.Item, p DecideParams, decided []decision) ([]store.Item, error) {
	var open, answers []store.Item
	now := r.cfg.Now().UTC()
	for _, d := range decided {
		if d.settled {
			continue
		}
		answer, err := r.checkAnswer(s, d.record, p.answer(d))
		if err != nil {
			return nil, err
		}
		answer.When = now
		if seq, _ := waitNumbers(d.record.Wait.ID); seq > s.Version {
			return nil, movedEachTime(p.Key) // the session we read is older than the wait
		}
		i := slices.IndexFunc(items, func(item store.Item) bool { return item.ID == d.record.Wait.ID })
		open, answers = append(open, items[i]), append(answers, answered(items[i], answer, false, false))
	}
	for _, item := range open {
		if err := r.timely(ctx, s, item); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// naming returns the parameters with their decisions named one by one, so that
// looking again is about these and about nothing that has come since.
func (p DecideParams) naming(decided []decision) DecideParams {
	p.ApproveAll, p.RejectAll, p.Approve, p.Reject = false, false, nil, nil
	for _, d := range decided {
		if d.approved {
			p.Approve = append(p.Approve, d.record.Wait.ID)
		} else {
			p.Reject = append(p.Reject, d.record.Wait.ID)
		}
	}
	return p
}

// checkpointSeq checks a checkpoint of this session and returns its seq, or that of
// the entry that opened the waits it shows; 0 for none.
func (r *Runtime) checkpointSeq(ctx context.Context, s *session.Session, id string) (int64, error) {
	if id == "" {
		return 0, nil
	}
	cp, err := session.ParseCheckpoint(id)
	if err != nil {
		return 0, err
	}
	if cp == s.Checkpoint() {
		if len(s.Waits) > 0 {
			opened, _ := waitNumbers(s.Waits[0].ID)
			return opened, nil
		}
		return cp.Seq, nil
	}
	if cp.Session == s.Key.ID && cp.Seq < s.Version {
		for e, err := range r.cfg.Store.Entries(ctx, s.Key, cp.Seq-1) {
			if err != nil {
				return 0, err
			}
			switch {
			case e.Token != cp.Token:
			case !e.IsCheckpoint():
				return 0, noCheckpoint(s.Key, e.Seq)
			case e.Kind == session.KindSuspended && len(e.Waits) == 0:
				return r.wentBackTo(ctx, s.Key, cp.Seq)
			default:
				return cp.Seq, nil
			}
			break
		}
	}
	return 0, refuse(CodeInvalidCheckpoint, s.Key, "it has no such checkpoint")
}

// decisions finds the approvals that are named, or all of a suspension.
func decisions(s *session.Session, records []session.WaitRecord, p DecideParams, since int64) ([]decision, error) {
	var out []decision
	byID := map[string]bool{}
	add := func(id string, approved bool) error {
		record, err := findApproval(p.Key, records, id, since)
		if err == nil && since == 0 && id != record.Wait.ID {
			err = MoreThanOnce(p.Key, records, record)
		}
		if err != nil {
			return err
		}
		if before, twice := byID[record.Wait.ID]; twice {
			if before != approved {
				return refuse(CodeInvalidInput, p.Key, "%s is both approved and rejected", id)
			}
			return nil
		}
		byID[record.Wait.ID] = approved
		out = append(out, newDecision(s, record, approved, p))
		return nil
	}
	for _, id := range p.Reject {
		if err := add(id, false); err != nil {
			return nil, err
		}
	}
	for _, id := range p.Approve {
		if err := add(id, true); err != nil {
			return nil, err
		}
	}
	if p.ApproveAll || p.RejectAll {
		for _, record := range undecided(batch(s, records, since)) {
			if _, named := byID[record.Wait.ID]; named {
				continue
			}
			if since == 0 {
				if err := MoreThanOnce(p.Key, records, record); err != nil {
					return nil, err
				}
			}
			out = append(out, newDecision(s, record, p.ApproveAll, p))
		}
	}
	if len(out) == 0 {
		text := "no approval waits there"
		if !p.ApproveAll && !p.RejectAll && slices.ContainsFunc(openWaits(records), func(w session.Wait) bool { return w.Kind == session.WaitApproval }) {
			text = "no approval is named: name those to approve and to reject, or say all"
		}
		e := refuse(CodeNothingToDecide, p.Key, "%s", text)
		e.Status = s.Status
		return nil, e
	}
	for _, d := range out {
		if w := d.record.Wait; p.EditedInput[w.Call] != nil && p.EditedInput[w.ID] != nil && w.Call != w.ID {
			return nil, refuse(CodeInvalidInput, p.Key, "there are two edited inputs for one approval, %s and %s: give one", w.Call, w.ID)
		}
	}
	for id := range p.EditedInput {
		if !slices.ContainsFunc(out, func(d decision) bool { return d.approved && (d.record.Wait.Call == id || d.record.Wait.ID == id) }) {
			return nil, refuse(CodeInvalidInput, p.Key, "edited input for %s, which is not approved", id)
		}
	}
	return out, nil
}

func newDecision(s *session.Session, record session.WaitRecord, approved bool, p DecideParams) decision {
	d := decision{record: record, approved: approved, settled: record.State != session.WaitOpen}
	if approved {
		d.edited = p.EditedInput[record.Wait.Call]
		if d.edited == nil {
			d.edited = p.EditedInput[record.Wait.ID]
		}
	}
	d.current = opened(s, record.Wait)
	return d
}

// opened reports whether a wait belongs to the suspension s is in.
func opened(s *session.Session, wait session.Wait) bool {
	return slices.ContainsFunc(s.Waits, func(w session.Wait) bool { return w.ID == wait.ID })
}

// findApproval finds the approval a call's or wait's id names: the open one, else the newest.
func findApproval(key session.Key, records []session.WaitRecord, id string, since int64) (session.WaitRecord, error) {
	var found *session.WaitRecord
	other := false
	for i := range records {
		record := &records[i]
		if record.Wait.ID != id && record.Wait.Call != id {
			continue
		}
		if record.Wait.Kind != session.WaitApproval {
			other = true
			continue
		}
		if seq, _ := waitNumbers(record.Wait.ID); since > 0 && seq == since {
			return *record, nil // what was shown at that checkpoint
		}
		if found == nil || better(record, found) {
			found = record
		}
	}
	switch {
	case found != nil:
		return *found, nil
	case other:
		return session.WaitRecord{}, refuse(CodeWrongKind, key, "%s waits for something else than an approval", id)
	}
	return session.WaitRecord{}, refuse(CodeWaitNotFound, key, "no approval of %s waits or waited there", id)
}

// MoreThanOnce refuses an answer to an open wait that was named by its call alone,
// if the call has had another wait of that kind: the answer may be the repeat of one
// to that, and nobody has seen what waits now. It returns nil when the call's name
// says which is meant.
func MoreThanOnce(key session.Key, records []session.WaitRecord, record session.WaitRecord) error {
	w := record.Wait
	if record.State != session.WaitOpen || !slices.ContainsFunc(records, func(r session.WaitRecord) bool {
		return r.Wait.Call == w.Call && r.Wait.Kind == w.Kind && r.Wait.ID != w.ID
	}) {
		return nil
	}
	return refuse(CodeStaleCheckpoint, key, "%s was asked for more than once, so that the call does not say which is meant. Look at what waits now, then name that: %s", label(w), w.ID)
}

// batch is the approvals of the suspension the session is in; with a checkpoint,
// those it opened; else the newest that were settled.
func batch(s *session.Session, records []session.WaitRecord, since int64) []session.WaitRecord {
	var current, shown, newest []session.WaitRecord
	var newestSeq int64
	for _, record := range records {
		if record.Wait.Kind != session.WaitApproval {
			continue
		}
		seq, _ := waitNumbers(record.Wait.ID)
		if opened(s, record.Wait) {
			current = append(current, record)
		}
		if seq == since {
			shown = append(shown, record)
		}
		if seq > s.Version {
			continue // opened while this was read: nobody has seen it
		}
		if seq > newestSeq {
			newestSeq, newest = seq, nil
		}
		if seq == newestSeq {
			newest = append(newest, record)
		}
	}
	switch {
	case since > 0:
		return shown
	case len(current) > 0:
		return current
	}
	return newest
}

// undecided is what approving or rejecting all is about: the approvals that are
// open. When none is, it is the ones that were decided last, to tell whether the
// same was said before.
func undecided(records []session.WaitRecord) []session.WaitRecord {
	var open, last []session.WaitRecord
	var newest time.Time
	for _, record := range records {
		if record.State == session.WaitOpen {
			open = append(open, record)
			continue
		}
		if record.Answer == nil {
			continue
		}
		if record.Answer.When.After(newest) {
			newest, last = record.Answer.When, nil
		}
		if record.Answer.When.Equal(newest) {
			last = append(last, record)
		}
	}
	if len(open) > 0 {
		return open
	}
	return last
}

// repeated reports whether every decision was taken before, the same way, and none
// is left to take. A decision that was taken differently is refused.
func (r *Runtime) repeated(s *session.Session, records []session.WaitRecord, p DecideParams, decided []decision) (bool, error) {
	all, current := true, false
	for _, d := range decided {
		all, current = all && d.settled, current || d.current
		if !d.settled {
			continue
		}
		if err := r.settled(p.Key, d.record, p.answer(d).Answer); err != nil {
			return false, err
		}
	}
	// Settled the same way, but siblings of this suspension may still be open.
	return all && (!current || len(unlisted(s, records, decided)) == 0), nil
}

// unlisted are the open approvals of the suspension nobody named: they are
// rejected, but only together with a decision on a sibling.
func unlisted(s *session.Session, records []session.WaitRecord, decided []decision) []decision {
	var out []decision
	for _, record := range records {
		if record.State != session.WaitOpen || record.Wait.Kind != session.WaitApproval || !opened(s, record.Wait) {
			continue // not of the suspension this decision is about: nobody has seen it
		}
		if slices.ContainsFunc(decided, func(d decision) bool { return d.record.Wait.ID == record.Wait.ID }) {
			continue
		}
		out = append(out, newDecision(s, record, false, DecideParams{}))
	}
	return out
}

func (p DecideParams) answer(d decision) SubmitParams {
	approved := d.approved
	return SubmitParams{Key: p.Key, Caller: p.Caller, Answer: session.Answer{
		Wait: d.record.Wait.ID, Kind: session.AnswerApproval, ToolCallID: d.record.Wait.Call, ApprovalID: d.record.Wait.Nonce,
		Approved: &approved, Reason: strings.TrimSpace(p.Reason), EditedInput: d.edited,
	}}
}
