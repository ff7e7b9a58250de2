package labtest

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// play is a session that the test writes itself, move by move, as if the runtime
// had run a script and nothing had come between.
type play struct {
	*testing.T
	*Ended
	s *session.Session
}

// played plays a script to its end: the records, and the files beside them.
func played(t *testing.T, script *Script) *Ended {
	t.Helper()
	script.Prepare(t.TempDir())
	p := begin(t, script)
	parsed, err := lab.Parse(script.Text())
	require.NoError(t, err)
	for k := range parsed.Len() {
		item := parsed[parsed.Reply(k)-1]
		switch {
		case item.Fail != "":
			continue // its step is put off, which leaves nothing to check
		case item.Say != "":
			p.do(engine.Close(p.s, engine.StepOutcome{Reply: p.reply(llm.Text(item.Say))}, p.stamp()))
		default:
			p.step(item.ToolCalls())
		}
	}
	return p.Ended
}

func begin(t *testing.T, script *Script) *play {
	t.Helper()
	key := session.Key{Tenant: "acme", ID: "s1"}
	p := &play{t, &Ended{Records: Records{Key: key}, Script: script, Told: map[string]session.Answer{}}, &session.Session{Key: key}}
	rules := session.Rules{Agent: "lab", Limits: session.Limits{Steps: 1000, Tokens: -1, ActiveMillis: -1, CostMicros: -1}}
	p.do(engine.Start(p.s, rules, llm.User(script.Text()), p.stamp()))
	return p
}

func (p *play) stamp() engine.Stamp {
	seq := p.s.Next()
	return engine.Stamp{Now: t0.Add(time.Duration(seq) * time.Second), By: "w", Token: fmt.Sprint("token-", seq), Attempt: session.Attempt{ID: "a1", N: 1, For: seq}}
}

func (p *play) do(m engine.Move) {
	stored, err := journal.Encode(&m.Entry)
	require.NoError(p, err)
	e, err := journal.Decode(stored)
	require.NoError(p, err)
	require.NoError(p, engine.Apply(p.s, &e))
	p.Entries, p.Waits = append(p.Entries, e), append(p.Waits, m.Waits...)
	switch {
	case m.RunIsNew:
		p.Runs = append(p.Runs, *m.Run)
	case m.Run != nil:
		p.Runs[len(p.Runs)-1] = *m.Run
	}
}

func (p *play) reply(parts ...llm.Part) *llm.Message {
	m := engine.WithCallIDs(llm.Message{Parts: parts}, p.s.Next())
	return &m
}

// step is one reply with the results of its calls: those that nobody is asked
// about first, the others when all answers are there.
func (p *play) step(calls []llm.ToolCall) {
	var parts []llm.Part
	for _, c := range calls {
		parts = append(parts, llm.Part{Kind: llm.PartToolCall, ToolCall: &c})
	}
	out := engine.StepOutcome{Reply: p.reply(parts...)}
	for _, c := range out.Reply.ToolCalls() {
		call := session.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		switch c.Name {
		case "deploy":
			out.Waits = append(out.Waits, session.Wait{Kind: session.WaitApproval, Call: c.ID, Tool: c.Name, Arguments: c.Arguments})
		case "pick_color":
			out.Waits = append(out.Waits, session.Wait{Kind: session.WaitQuestion, Call: c.ID, Tool: c.Name, Question: &session.Question{ID: "color", Kind: session.QuestionChoice}})
		default:
			out.Results = append(out.Results, p.run(call))
		}
	}
	from := len(p.Waits)
	p.do(engine.Close(p.s, out, p.stamp()))
	if len(out.Waits) == 0 {
		return
	}
	var answers []session.Answer
	for i := range p.Waits[from:] {
		record := &p.Waits[from+i]
		a := session.Answer{Wait: record.Wait.ID, ToolCallID: record.Wait.Call, Who: "ana", When: t0, From: "test"}
		if record.Wait.Kind == session.WaitApproval {
			yes := !p.Script.EffectOf(p, record.Wait.Arguments).Denied
			a.Kind, a.ApprovalID, a.Approved = session.AnswerApproval, record.Wait.Nonce, &yes
		} else {
			a.Kind, a.QuestionID, a.Selected = session.AnswerReply, "color", []string{"red"}
		}
		record.State, record.Answer = session.WaitTaken, &a
		p.Told[a.Wait] = a
		answers = append(answers, a)
	}
	p.do(engine.Resumed(p.s, answers, nil, nil, p.stamp()))
	out = engine.StepOutcome{}
	for _, c := range p.s.Calls {
		out.Results = append(out.Results, p.run(c))
	}
	p.do(engine.Close(p.s, out, p.stamp()))
}

// run has the effect of a call, once, and writes the ledger.
func (p *play) run(c session.Call) llm.ToolResult {
	if c.Name == "echo" || c.Name == "pick_color" {
		return engine.Result(c, llm.ResultSuccess, "fine")
	}
	effect := p.Script.EffectOf(p, c.Arguments)
	if effect.Denied {
		p.Ledger = append(p.Ledger, journal.ToolRecord{Call: c.ID, State: journal.ToolClosed})
		return engine.Result(c, llm.ResultDenied, engine.TextDenied)
	}
	effect.write()
	if effect.Tool != once {
		p.Ledger = append(p.Ledger, journal.ToolRecord{Call: c.ID, State: journal.ToolFinished})
	}
	return engine.Result(c, llm.ResultSuccess, "done")
}

// write adds the line of an effect to its file.
func (e Effect) write() {
	file, err := os.OpenFile(e.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(file, e.Line)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		panic(err)
	}
}

// faults returns what a check reports, "" if nothing.
func faults(check func(t require.TestingT)) string {
	trial := &Trial{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(trial)
	}()
	<-done
	if !trial.Failed() {
		return ""
	}
	return fmt.Sprint(trial.faults)
}
