package labtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// small is a script with one call of each kind.
func small() *Script {
	s := &Script{}
	s.Add(s.Echo())
	s.Add(s.Line(), s.Once())
	s.Add(s.Deploy("deploy"), s.Deny(), s.Ask())
	return s
}

func TestCheck_finds_nothing(t *testing.T) {
	t.Parallel()
	for _, with := range []Mix{{}, {Ask: true}, {Deny: true}, {Ask: true, Deny: true, Later: true}} {
		for seed := range uint64(20) {
			e := played(t, Random(rand.New(rand.NewPCG(seed, 1)), with))
			require.Empty(t, faults(func(t require.TestingT) { require.Zero(t, e.Check(t)) }), "%+v, seed %d", with, seed)
		}
	}
	e := played(t, small())
	require.Empty(t, faults(func(t require.TestingT) { require.Zero(t, e.Check(t)) }))
}

// result is what the journal says became of the call of a tool.
func (e *Ended) result(tool string) *llm.ToolResult {
	for _, entry := range e.Entries {
		for _, m := range entry.Messages {
			for _, p := range m.Parts {
				if p.ToolResult != nil && p.ToolResult.Name == tool {
					return p.ToolResult
				}
			}
		}
	}
	return nil
}

// entry is the first of a kind.
func (e *Ended) entry(kind session.Kind) *journal.Entry {
	return &e.Entries[slices.IndexFunc(e.Entries, func(entry journal.Entry) bool { return entry.Kind == kind })]
}

// TestAsked: what is asked again because the agent was changed counts once.
func TestAsked(t *testing.T) {
	t.Parallel()
	e := played(t, small())
	again := e.Waits[0]
	again.Wait.OpenedAt = again.Wait.OpenedAt.Add(1)
	require.Equal(t, 4, Ended{Records: Records{Waits: append(slices.Clip(e.Waits), again)}}.asked())
	seen := slices.Clone(e.Waits)
	seen[0].Wait.ShownDigest = "a preview"
	require.Equal(t, 3, Ended{Records: Records{Waits: append(slices.Clip(seen), again)}}.asked(), "an older door did not show it")
	again.Wait.Policy = "of another definition"
	require.Equal(t, 3, Ended{Records: Records{Waits: append(slices.Clip(e.Waits), again)}}.asked())
}

func TestCheck_reports(t *testing.T) {
	t.Parallel()
	const line, onceMore, deployed, denied = 0, 1, 2, 3 // effects, of which there are four
	for name, c := range map[string]struct {
		spoil func(e *Ended)
		want  string
	}{
		"no session":                 {func(e *Ended) { e.Records = Records{} }, "does not exist"},
		"a lost entry":               {func(e *Ended) { e.Entries = slices.Delete(e.Entries, 1, 2) }, "one entry a number"},
		"an entry twice":             {func(e *Ended) { e.Entries = append(e.Entries, e.Entries[len(e.Entries)-1]) }, "one entry a number"},
		"a token twice":              {func(e *Ended) { e.Entries[3].Token = e.Entries[1].Token }, "the token of entry 4 is another's"},
		"another entry before":       {func(e *Ended) { e.Entries[2].Prev = "another" }, "entry 3 does not follow entry 2"},
		"a journal that breaks off":  {func(e *Ended) { e.Entries = e.Entries[:len(e.Entries)-1] }, "running"},
		"a journal that cannot be":   {func(e *Ended) { e.Entries[1].Run = 7 }, "broken journal"},
		"a reply that is missing":    {func(e *Ended) { e.Script.replies++ }, "steps"},
		"a lost run":                 {func(e *Ended) { e.Runs = e.Runs[:1] }, "runs"},
		"a gap between runs":         {func(e *Ended) { e.Runs[1].ID = 3 }, "run 2 is not there"},
		"a run after another":        {func(e *Ended) { e.Runs[1].PreviousRun = 0 }, "before run 2"},
		"a run that begins later":    {func(e *Ended) { e.Runs[1].FirstEntry++ }, "run 2"},
		"a run that goes on":         {func(e *Ended) { e.Runs[0].EndedAt = nil }, "run 1 has not ended"},
		"a run that ends too early":  {func(e *Ended) { e.Runs[1].LastEntry-- }, "the last run ends with the journal"},
		"a call nobody asked for":    {func(e *Ended) { e.Script.calls-- }, "calls"},
		"a line twice":               {func(e *Ended) { e.Script.effects[line].write() }, `"line 0" succeeded`},
		"a line twice, idempotent":   {func(e *Ended) { e.Script.effects[onceMore].write() }, `"once 1" succeeded`},
		"a lost line":                {func(e *Ended) { e.Script.effects[line].Line = "line 7" }, `"line 7" succeeded`},
		"unknown, undisturbed":       {func(e *Ended) { e.result("append_line").Status = llm.ResultUnknown }, "unknown although nothing happened"},
		"unknown, idempotent":        {func(e *Ended) { e.Disturbed = true; e.result(once).Status = llm.ResultUnknown }, `"once 1" is unknown`},
		"unknown and twice":          {func(e *Ended) { e.unknownTwice(line) }, `"line 0" is unknown`},
		"a call that failed":         {func(e *Ended) { e.result("append_line").Status = llm.ResultError }, `"line 0" is error`},
		"a plain call that failed":   {func(e *Ended) { e.result("echo").Status = llm.ResultError }, "(echo) is error"},
		"a refused call that ran":    {func(e *Ended) { e.Script.effects[denied].write() }, "was refused"},
		"a refused call that counts": {func(e *Ended) { e.Script.effects[deployed].Denied = true }, "was refused"},
		"a refused call that began":  {func(e *Ended) { e.Ledger[2].State = journal.ToolStarted }, "which was refused"},
		"a ledger that goes on":      {func(e *Ended) { e.Ledger[0].State = journal.ToolStarted }, "the ledger of c3-1"},
		"a ledger that is lost":      {func(e *Ended) { e.Ledger = nil }, "the ledger of c3-1"},
		"other arguments":            {func(e *Ended) { e.Script.effects[line].arguments["text"] = "another" }, `calls that write "line 0"`},
		"a lost wait":                {func(e *Ended) { e.Waits = e.Waits[1:] }, "waits"},
		"a wait more":                {func(e *Ended) { e.Script.waits-- }, "waits"},
		"a wait asked again": {func(e *Ended) {
			w := e.Waits[0]
			e.Waits = append(e.Waits, w)
			e.Waits[3].Wait.OpenedAt = e.Waits[3].Wait.OpenedAt.Add(1)
		}, "waits"},
		"a wait no entry opened":    {func(e *Ended) { w := e.entry(session.KindSuspended); w.Waits = w.Waits[1:] }, "waits that entries opened"},
		"a wait opened twice":       {func(e *Ended) { w := e.entry(session.KindSuspended); w.Waits = append(w.Waits, w.Waits[0]) }, "was opened"},
		"a wait still open":         {func(e *Ended) { e.Waits[0].State = session.WaitAnswered }, "wait w4-1"},
		"a wait without an answer":  {func(e *Ended) { e.Waits[0].Answer = nil }, "wait w4-1 has no answer"},
		"an answer taken in twice":  {func(e *Ended) { a := e.entry(session.KindResumed); a.Answers = append(a.Answers, a.Answers[0]) }, "was taken in"},
		"an answer not taken in":    {func(e *Ended) { a := e.entry(session.KindResumed); a.Answers = a.Answers[1:] }, "was taken in"},
		"another decision":          {func(e *Ended) { no := false; e.Waits[0].Answer.Approved = &no }, "the answer to w4-1"},
		"another choice":            {func(e *Ended) { e.Waits[2].Answer.Selected = []string{"blue"} }, "the answer to w4-3"},
		"an answer of another kind": {func(e *Ended) { e.Waits[0].Answer.Kind = session.AnswerExpiry }, "the answer to w4-1"},
		"an answer to another wait": {func(e *Ended) { e.Told["w7-1"] = session.Answer{} }, "w7-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := played(t, small())
			c.spoil(e)
			require.Contains(t, faults(func(t require.TestingT) { e.Check(t) }), c.want)
		})
	}
}

func (e *Ended) unknownTwice(effect int) {
	e.Disturbed = true
	e.result(e.Script.effects[effect].Tool).Status = llm.ResultUnknown
	e.Script.effects[effect].write()
}

func TestCheck_lets_outcomes_be_unknown_where_something_struck(t *testing.T) {
	t.Parallel()
	e := played(t, small())
	e.Disturbed = true
	e.Ledger[0].State = journal.ToolStarted
	e.result("append_line").Status = llm.ResultUnknown
	require.Empty(t, faults(func(t require.TestingT) { require.Equal(t, 1, e.Check(t)) }))
	e.Script.effects[0].Line = "not written"
	require.Empty(t, faults(func(t require.TestingT) { require.Equal(t, 1, e.Check(t)) }))
}

// Folding refuses such journals, so Check reports them as broken. The rule is tested on
// its own too, in case folding lets them through one day.
func TestCheckCalls_reports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(e *Ended, results *llm.Message)
		want  string
	}{
		"a call twice": {func(e *Ended, _ *llm.Message) {
			e.Entries[2].Messages = append(e.Entries[2].Messages, e.Entries[2].Messages[0])
		}, "declared twice"},
		"a result twice":          {func(_ *Ended, m *llm.Message) { m.Parts = append(m.Parts, m.Parts[0]) }, "results of c3-1 (append_line)"},
		"a lost result":           {func(_ *Ended, m *llm.Message) { m.Parts = m.Parts[1:] }, "results of c3-1 (append_line)"},
		"a result without a call": {func(_ *Ended, m *llm.Message) { m.Parts[0].ToolResult.CallID = "c9-1" }, "a result without a call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := played(t, small())
			c.spoil(e, &e.Entries[2].Messages[1])
			require.Contains(t, faults(func(t require.TestingT) { e.checkCalls(t) }), c.want)
			require.Contains(t, faults(func(t require.TestingT) { e.Check(t) }), "broken journal")
		})
	}
}

func TestCheckEnd_reports_a_second_task(t *testing.T) {
	t.Parallel()
	script := &Script{}
	p := begin(t, script)
	say := func() {
		p.do(engine.Close(p.s, engine.StepOutcome{Reply: p.reply(llm.Text("done"))}, p.stamp()))
	}
	say()
	require.Empty(t, faults(func(t require.TestingT) { p.Check(t) }))
	p.do(engine.Start(p.s, p.s.Rules, llm.User("more"), p.stamp()))
	say()
	require.Contains(t, faults(func(t require.TestingT) { p.Check(t) }), "tasks")
}

func TestCheckDied(t *testing.T) {
	t.Parallel()
	died := func(failure session.Failure) *Ended {
		p := begin(t, &Script{})
		p.do(engine.Close(p.s, engine.StepOutcome{Failure: &failure}, p.stamp()))
		return p.Ended
	}
	e := died(session.Failure{Type: "step_died", Message: "again and again", Retryable: true})
	check := func(t require.TestingT) { e.CheckDied(t) }
	require.Empty(t, faults(check))
	e.Ledger = []journal.ToolRecord{{Call: "c2-1", State: journal.ToolStarted}}
	require.Contains(t, faults(check), "what never ran")
	e.Entries[1].Prev = "another"
	require.Contains(t, faults(check), "entry 2 does not follow entry 1")
	e = died(session.Failure{Type: "step_died", Message: "for good"})
	require.Contains(t, faults(check), "it may be tried again")
	e = died(session.Failure{Type: "limit_reached", Message: "too long", Retryable: true})
	require.Contains(t, faults(check), "limit_reached")
	e = played(t, small())
	require.Contains(t, faults(check), "completed")
	e = &Ended{}
	require.Contains(t, faults(check), "does not exist")
}
