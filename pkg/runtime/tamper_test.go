package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// decidedStock is a stock with a call that somebody has decided on, and that has not gone on since: with a finished
// call before it, a person who has read it and an answer that was refused.
func decidedStock(t *testing.T, s stock, answer session.Answer) stock {
	t.Helper()
	w, done := s.world(t)
	p := w.process()
	w.run(p, "approve")
	wait := w.open(session.WaitApproval)
	p.Viewed(t.Context(), w.key, person, []journal.WaitRecord{wait})
	forged := fill(wait.Wait, yes())
	forged.ApprovalID = "w4-1_forged"
	forged.Wait = wait.Wait.ID
	_, err := p.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: forged})
	require.Error(t, err)
	_, err = p.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait.Wait, answer), HoldResume: true})
	require.NoError(t, err)
	lines, check, err := p.VerifyAudit(t.Context(), w.key)
	require.NoError(t, err)
	require.Equal(t, session.AuditCheck{Whole: true, Entries: 4, Waits: 1, Lines: 2}, check)
	var kinds []session.AuditKind
	for _, line := range lines {
		kinds = append(kinds, line.Kind)
	}
	require.Equal(t, []session.AuditKind{session.AuditAsked, session.AuditViewed, session.AuditRefused, session.AuditAnswered}, kinds)
	done()
	return s
}

// finishedStock is a stock with a session that has ended.
func finishedStock(t *testing.T, s stock) stock {
	t.Helper()
	return laterStock(t, decidedStock(t, s, yes()), func(w *world) {
		require.Equal(t, map[string]int{"deploy 1": 1}, w.workOn())
		w.checkAtRest()
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
}

// takenStock is a stock whose worker has taken an answer in, and died then.
func takenStock(t *testing.T, s stock, answer session.Answer) stock {
	t.Helper()
	return laterStock(t, decidedStock(t, s, answer), func(w *world) {
		broken := errors.New("killed")
		real := w.cfg.Store
		w.cfg.Store = &hook{Store: real, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			if p.Entry.Kind != session.KindResumed {
				return store.Committed{}, broken
			}
			return real.Commit(ctx, p)
		}}
		require.Empty(t, w.workOn())
		entries := w.journal()
		require.Equal(t, session.KindResumed, entries[len(entries)-1].Kind)
	})
}

func laterStock(t *testing.T, s stock, goOn func(*world)) stock {
	t.Helper()
	w, done := s.world(t)
	goOn(w)
	done()
	return s
}

// TestVerify_finds_what_was_changed: whatever is changed in an engine's records by somebody who does not make the
// hashes anew is found, and nothing runs that nobody approved.
func TestVerify_finds_what_was_changed(t *testing.T) {
	t.Parallel()
	for engine, made := range stocks() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			findsChanges(t, made)
		})
	}
}

func findsChanges(t *testing.T, made func(*testing.T) stock) {
	approved, rejected, finished := decidedStock(t, made(t), yes()), decidedStock(t, made(t), no()), finishedStock(t, made(t))
	for name, c := range map[string]struct {
		stock  stock
		change change
		// record that is named; runs says that what was approved still does.
		record string
		runs   bool
	}{
		"arguments in the newest entry":              {approved, inEntry(4, `{"text":"1"}`, `{"text":"9"}`), "entry 4", false},
		"arguments of the wait alone, in the entry":  {approved, inEntry(4, `"arguments":{"text":"1"},"digest"`, `"arguments":{"text":"9"},"digest"`), "entry 4", false},
		"arguments in entry and wait":                {approved, changes(inEntry(4, `{"text":"1"}`, `{"text":"9"}`), inItems("wait", `{"text":"1"}`, `{"text":"9"}`)), "entry 4", false},
		"who may answer, in the newest entry":        {approved, inEntry(4, `"tool":"deploy"`, `"tool":"line"`), "entry 4", false},
		"an older entry":                             {approved, inEntry(1, `"approve"`, `"approvE"`), "entry 1", false},
		"a result in an entry":                       {approved, inEntry(3, `did a`, `did b`), "entry 3", false},
		"the newest entry is cut off":                {approved, without("entry", "4"), "head", false},
		"arguments in the wait":                      {approved, inItems("wait", `{"text":"1"}`, `{"text":"9"}`), "wait w4-1", false},
		"the digest in the wait":                     {approved, inItems("wait", `"digest":"`, `"digest":"x`), "wait w4-1", false},
		"a no made a yes":                            {rejected, inItems("wait", `"approved":false`, `"approved":true`), "wait w4-1", false},
		"a no made a yes, without the seal":          {rejected, changes(inItems("wait", `"approved":false`, `"approved":true`), inItems("wait", `,"seal":"`, `,"gone":"`)), "wait w4-1", false},
		"a no made a yes, the seal taken out":        {rejected, changes(inItems("wait", `"approved":false`, `"approved":true`), unsealed("wait")), "", false},
		"a no made a yes, of another revision":       {rejected, changes(inItems("wait", `"approved":false`, `"approved":true`), revised("wait")), "", false},
		"a yes made a no":                            {approved, inItems("wait", `"approved":true`, `"approved":false`), "wait w4-1", false},
		"who answered":                               {approved, inItems("wait", `"who":"`+person.Who+`"`, `"who":"eve"`), "wait w4-1", false},
		"edited arguments are put in":                {approved, inItems("wait", `"approved":true,`, `"approved":true,"editedInput":{"text":"9"},`), "wait w4-1", false},
		"the answer is taken out":                    {approved, inItems("wait", `"state":"answered"`, `"state":"open"`), "wait w4-1", false},
		"the wait is taken out":                      {approved, without("wait", ""), "wait w4-1", false},
		"who was refused":                            {approved, inItems("audit", `"who":"`+person.Who+`"`, `"who":"eve"`), "line 1 of w4-1", true},
		"the code of a refusal":                      {approved, inItems("audit", `invalid_answer`, `invalid_answeR`), "line 2 of w4-1", true},
		"the first line is taken out":                {approved, without("audit", "0001"), "lines of w4-1", true},
		"the last line is taken out":                 {approved, without("audit", "0002"), "lines of w4-1", true},
		"all lines are taken out":                    {approved, without("audit", ""), "lines of w4-1", true},
		"HEAD says that it runs":                     {approved, inItems("head", `"status":"suspended"`, `"status":"running"`), "head", true},
		"HEAD names another entry":                   {approved, inItems("head", `"newest":{"seq":4,"hash":"`, `"newest":{"seq":4,"hash":"x`), "head", false},
		"newest entry and HEAD without its hash":     {approved, changes(inEntry(4, `{"text":"1"}`, `{"text":"9"}`), inItems("head", `"newest"`, `"oldest"`)), "head", false},
		"the result in a ledger":                     {approved, inItems("tool", `did a`, `did b`), "call c2-1", true},
		"the state of a ledger":                      {approved, inItems("tool", `"finished"`, `"memo"`), "call c2-1", true},
		"the record of a run":                        {approved, inItems("run", `"trigger":"start"`, `"trigger":"retry"`), "run 1", true},
		"the record of a run is taken out":           {approved, without("run", ""), "run 1", true},
		"an audit line of another session is put in": {approved, moved("0002", "0000000009-01-0001", "0000000004", "0000000009"), "lines of w4-1", true},
		"an answer that was taken in":                {takenStock(t, made(t), no()), inEntry(5, `"approved":false`, `"approved":true`), "entry 5", false},
		"its wait, after it was taken":               {finished, inItems("wait", `"approved":true`, `"approved":false`), "wait w4-1", false},
		"who answered, in the entry":                 {finished, inEntry(5, `"who":"`+person.Who+`"`, `"who":"eve"`), "entry 5", false},
		"the newest entry of all":                    {finished, inEntry(7, "bye", "BYE"), "entry 7", false},
		"the last line, after its answer was taken":  {finished, without("audit", "0002"), "lines of w4-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.stock.copy(t)
			c.change(t, s)
			w, _ := s.world(t)
			_, check, err := w.process().VerifyAudit(t.Context(), w.key)
			require.NoError(t, err)
			var named []string
			for _, f := range append(check.Faults, check.Unproven...) {
				named = append(named, f.Record)
			}
			if c.record != "" {
				require.False(t, check.Whole)
				require.Contains(t, named, c.record, fmt.Sprint(check.Faults))
			} else {
				require.Contains(t, named, "wait w4-1", "nothing says that it is as it was written")
			}
			want := map[string]int{}
			if c.runs {
				want["deploy 1"] = 1
			}
			did := w.workOn()
			if !c.runs {
				require.Empty(t, did)
			}
			for what, n := range did {
				require.Equal(t, want[what], n, what)
			}
		})
	}
}

// TestVerify_finds_every_byte: no byte of a session's records can be changed unnoticed, and none lets
// anything else run than what was approved.
func TestVerify_finds_every_byte(t *testing.T) {
	t.Parallel()
	for engine, made := range stocks() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			findsBytes(t, made, map[string]uint64{"data file": 150, "DynamoDB": 40}[engine])
		})
	}
}

func findsBytes(t *testing.T, made func(*testing.T) stock, times uint64) {
	require.Positive(t, times)
	of := []stock{decidedStock(t, made(t), yes()), finishedStock(t, made(t))}
	for seed := range times {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // which byte is all the same
		s := of[seed%2].copy(t)
		what := flipByte(t, s, random)
		w, done := s.world(t)
		_, check, err := w.process().VerifyAudit(t.Context(), w.key)
		if err == nil {
			require.False(t, check.Whole, what)
		} else { // so broken that the store says so
			require.Contains(t, []runtime.Code{runtime.CodeCorrupt, runtime.CodeNotOurs, runtime.CodeNewerNeeded}, codeOf(err), what+": "+err.Error())
		}
		for did, n := range w.workOn() {
			require.Equal(t, "deploy 1", did, what)
			require.Equal(t, 1, n, what)
		}
		done()
	}
}

// TestBack_to_what_was_changed: neither a fork nor going back goes on from a newest entry that was changed, and an
// entry before it is still there to go back to.
func TestBack_to_what_was_changed(t *testing.T) {
	t.Parallel()
	for engine, made := range stocks() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := decidedStock(t, made(t), no())
			inEntry(4, `{"text":"1"}`, `{"text":"9"}`)(t, s)
			w, _ := s.world(t)
			p, entries := w.process(), w.journal()
			newest, before := entries[3].Checkpoint(w.key.ID).String(), entries[2].Checkpoint(w.key.ID).String()
			for _, checkpoint := range []string{"", newest} {
				_, err := p.Fork(t.Context(), runtime.ForkParams{Origin: w.key, ID: "f", Checkpoint: checkpoint, Caller: person})
				require.Equal(t, runtime.CodeCorrupt, codeOf(err), checkpoint)
			}
			_, err := p.GoBack(t.Context(), runtime.BackParams{Key: w.key, Checkpoint: newest, Caller: person})
			require.Equal(t, runtime.CodeCorrupt, codeOf(err))
			_, err = p.Fork(t.Context(), runtime.ForkParams{Origin: w.key, ID: "f", Checkpoint: before, Caller: person})
			require.NoError(t, err)
			_, err = p.GoBack(t.Context(), runtime.BackParams{Key: w.key, Checkpoint: before, Caller: person})
			require.NoError(t, err)
		})
	}
}
