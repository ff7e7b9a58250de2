package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// fourEyes is a rule that two of Ann, Bob and Cyd must agree, and Ann asked for the task.
func fourEyes() tool.Spec[textIn] {
	return tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], Who: []string{"ann", "bob", "cyd", "dan"}, Need: 2, NotRequester: true}
}

// ruled is a world in which a call waits that has a rule.
func ruled(t *testing.T, spec tool.Spec[textIn], change ...func(*agent.Agent)) (*world, *process) {
	t.Helper()
	made := newEffects()
	pays := func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(spec, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
			made.add("pay " + in.Text)
			return "paid", nil
		}))
	}
	w := newWorld(t, made, helper(made, script{"go": {calls("pay", `{"text":"5"}`), says("bye")}}, append(change, pays)...))
	p := w.process()
	w.run(p, "go")
	return w, p
}

// votes answers the approval as somebody does who has looked at it.
func (w *world) votes(p *process, by runtime.Caller, a session.Answer) (runtime.Submitted, error) {
	wait := w.open(session.WaitApproval).Wait
	a = fill(wait, a)
	if by.ByLink {
		a.Digest = wait.Digest // a link says what its page showed
	}
	return p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: by, Answer: a})
}

func named(who string) runtime.Caller { return runtime.Caller{Who: who, From: "test"} }

// TestVotes_every_order: Ann, who asked, is refused whenever she comes; it runs once two others agree.
func TestVotes_every_order(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"ann bob cyd", "ann cyd bob", "bob ann cyd", "bob cyd ann", "cyd ann bob", "cyd bob ann"} {
		for _, door := range []string{"submit", "decide", "confirm"} {
			t.Run(order+" by "+door, func(t *testing.T) {
				t.Parallel()
				w, p := ruled(t, fourEyes())
				voted := 0
				for _, who := range strings.Fields(order) {
					code, missing := codeOf(w.decides(p, door, who)), 0
					switch {
					case who == "ann" && voted < 2:
						require.Equal(t, runtime.CodeRequesterMayNotAnswer, code)
						continue
					case who == "ann":
						require.Contains(t, []runtime.Code{runtime.CodeRequesterMayNotAnswer, ""}, code, "it has gone on")
						continue
					}
					require.Empty(t, code)
					if voted++; voted == 1 {
						missing = 1
					}
					require.NoError(t, p.work())
					record := w.waits()[0]
					require.Len(t, record.Votes, voted)
					require.Equal(t, missing == 1, record.State == session.WaitOpen)
					require.Equal(t, voted-1, w.effects.count("pay 5"), "after %d", voted)
				}
				require.NoError(t, p.settle())
				require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
				answer := w.answered()
				require.Len(t, answer.Votes, 2)
				require.ElementsMatch(t, []string{"bob", "cyd"}, []string{answer.Votes[0].Who, answer.Votes[1].Who})
				require.Equal(t, w.waits()[0].Wait.Digest, answer.Votes[0].Digest)
				w.checkAtRest()
			})
		}
	}
}

// decides approves by one of the doors there are.
func (w *world) decides(p *process, door, who string) error {
	ctx, wait := context.Background(), w.open(session.WaitApproval).Wait.ID
	switch door {
	case "decide":
		_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Approve: []string{wait}, Caller: named(who)})
		return err
	case "confirm":
		_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithConfirmation, Confirmation: runtime.Confirmation{Wait: wait, Approved: true}, Caller: named(who)})
		return err
	}
	_, err := w.votes(p, named(who), yes())
	return err
}

// answered is the one answer that the journal has taken in.
func (w *world) answered() session.Answer {
	w.t.Helper()
	var all []session.Answer
	for _, e := range w.journal() {
		all = append(all, e.Answers...)
	}
	require.Len(w.t, all, 1)
	return all[0]
}

// TestVotes_one_person: one person is one vote, whatever the door; the same vote again gets the first
// reply, and another one is refused.
func TestVotes_one_person(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, fourEyes())
	first, err := w.votes(p, named("bob"), yes())
	require.NoError(t, err)
	require.Equal(t, runtime.ContinuationWaiting, first.Continuation)
	require.Equal(t, 1, first.VotesMissing)
	require.Len(t, first.Open, 1)
	require.Len(t, first.Open[0].Votes, 1)
	for _, door := range []string{"submit", "decide", "confirm"} {
		require.NoError(t, w.decides(p, door, "bob"))
	}
	again, err := w.votes(p, runtime.Caller{Who: "bob", From: "elsewhere"}, yes())
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.Equal(t, first.Answer, again.Answer)
	require.Equal(t, 1, again.VotesMissing)

	no, reasoned := yes(), yes()
	no.Approved, reasoned.Reason = new(false), "because"
	for _, other := range []session.Answer{no, reasoned} {
		_, err = w.votes(p, named("bob"), other)
		require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	}
	_, err = p.Decide(context.Background(), runtime.DecideParams{Key: w.key, RejectAll: true, Caller: named("bob")})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	require.Len(t, w.waits()[0].Votes, 1)

	_, err = w.votes(p, named("cyd"), yes())
	require.NoError(t, err)
	late, err := w.votes(p, named("bob"), yes())
	require.NoError(t, err, "also once it is decided")
	require.Equal(t, first.Answer, late.Answer)
	_, err = w.votes(p, named("dan"), no)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "the votes have decided")
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("pay 5"))
	after, err := w.votes(p, named("bob"), yes())
	require.NoError(t, err)
	require.Equal(t, first.Answer, after.Answer)
}

// TestVotes_idempotency: a request that is sent again under its key gets the vote it was.
func TestVotes_idempotency(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, fourEyes())
	params := runtime.SubmitParams{Key: w.key, Caller: named("bob"), Answer: fill(w.open(session.WaitApproval).Wait, yes()), IdempotencyKey: "k"}
	first, err := p.Submit(context.Background(), params)
	require.NoError(t, err)
	_, err = w.votes(p, named("cyd"), yes())
	require.NoError(t, err)
	again, err := p.Submit(context.Background(), params)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.Answer, again.Answer)
	require.Zero(t, again.VotesMissing)
}

// TestVotes_noes: one no ends it, or as many as the rule says; and where those who are named cannot
// approve any more, it is over.
func TestVotes_noes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tool.Spec[textIn])
		votes  string
		ran    bool
		open   bool
	}{
		"one no":                       {func(*tool.Spec[textIn]) {}, "bob- ", false, false},
		"a yes and a no":               {func(*tool.Spec[textIn]) {}, "bob+ cyd-", false, false},
		"a no of two":                  {func(s *tool.Spec[textIn]) { s.Noes = 2 }, "bob-", false, true},
		"two noes":                     {func(s *tool.Spec[textIn]) { s.Noes = 2 }, "bob- cyd-", false, false},
		"two yeses in spite of one no": {func(s *tool.Spec[textIn]) { s.Noes = 2 }, "bob- cyd+ dan+", true, false},
		"too few are left":             {func(s *tool.Spec[textIn]) { s.Noes, s.Who = 3, []string{"ann", "bob", "cyd"} }, "bob-", false, false},
		"one yes of one, two noes":     {func(s *tool.Spec[textIn]) { s.Noes, s.Need = 2, 0 }, "bob- cyd+", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := fourEyes()
			c.change(&spec)
			w, p := ruled(t, spec)
			for _, vote := range strings.Fields(c.votes) {
				a := yes()
				a.Approved, a.Reason = new(strings.HasSuffix(vote, "+")), "so says "+vote
				_, err := w.votes(p, named(vote[:3]), a)
				require.NoError(t, err)
			}
			require.NoError(t, p.settle())
			require.Equal(t, c.open, w.waits()[0].State == session.WaitOpen)
			require.Equal(t, c.ran, w.effects.count("pay 5") == 1)
			if !c.open {
				require.Equal(t, c.ran, *w.answered().Approved)
				require.Len(t, w.answered().Votes, len(strings.Fields(c.votes)))
			}
			if !c.open && !c.ran {
				require.Equal(t, llm.ResultDenied, results(w.session())["c2-1"].Status)
			}
		})
	}
}

// TestVotes_racing: whoever comes at once, each person counts once, the call runs once, and never for
// less than two people.
func TestVotes_racing(t *testing.T) {
	t.Parallel()
	for range 5 {
		w, _ := ruled(t, fourEyes())
		wait := w.open(session.WaitApproval).Wait
		var all sync.WaitGroup
		for i := range 12 {
			p, who := w.process(), []string{"ann", "bob", "cyd", "dan"}[i%4]
			all.Go(func() {
				_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: named(who), Answer: fill(wait, yes())})
				code := codeOf(err)
				if who == "ann" && code != runtime.CodeRequesterMayNotAnswer {
					t.Errorf("ann got %q", code)
				}
				if who != "ann" && code != "" && code != runtime.CodeStoreUnavailable {
					t.Errorf("%s got %q", who, code)
				}
			})
		}
		all.Wait()
		require.NoError(t, w.process().settle())
		require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
		var who []string
		for _, v := range w.answered().Votes {
			who = append(who, v.Who)
		}
		slices.Sort(who)
		require.Len(t, slices.Compact(who), 2)
		require.NotContains(t, who, "ann")
	}
}

// TestVotes_crash: a process that dies at any write of the first vote or of the second loses no vote
// that was told, and counts none twice.
func TestVotes_crash(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"bob", "cyd"} {
		for at := 1; at <= 4; at++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s at %d after %v", dies, at, after), func(t *testing.T) {
					t.Parallel()
					w, p := ruled(t, fourEyes())
					f := &fuse{at: at, after: after}
					for _, who := range []string{"bob", "cyd"} {
						if who == dies {
							_, err := w.votes(w.fusedProcess(f, true, 1), named(who), yes())
							require.Equal(t, f.over, err != nil, "%v", f.ops)
						}
						_, err := w.votes(p, named(who), yes()) // sent again
						require.NoError(t, err)
						require.Len(t, w.waits()[0].Votes, map[string]int{"bob": 1, "cyd": 2}[who])
					}
					require.NoError(t, p.settle())
					require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
					w.checkAtRest()
				})
			}
		}
	}
}

// TestVotes_expire: the deadline counts where votes are missing; those there are stay on record.
func TestVotes_expire(t *testing.T) {
	t.Parallel()
	spec := fourEyes()
	spec.Expiry = &tool.Expiry{After: time.Minute, Outcome: tool.ExpireDeny}
	w, p := ruled(t, spec)
	_, err := w.votes(p, named("bob"), yes())
	require.NoError(t, err)
	require.NotNil(t, w.waits()[0].Due, "a vote does not put the deadline off")
	w.clock.advance(2 * time.Minute)
	_, err = w.votes(p, named("cyd"), yes())
	require.Equal(t, runtime.CodeExpired, codeOf(err))
	require.NoError(t, p.settle())
	require.Empty(t, w.effects.all())
	require.Equal(t, session.AnswerExpiry, w.answered().Kind)
	require.Len(t, w.answered().Votes, 1)
	require.Equal(t, llm.ResultTimedOut, results(w.session())["c2-1"].Status)
}

// TestVotes_or_deadline: of the second vote and the expiry, at the same moment, one counts.
func TestVotes_or_deadline(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"vote", "expiry"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			spec := fourEyes()
			spec.Expiry = &tool.Expiry{After: time.Minute, Outcome: tool.ExpireDeny}
			w, p := ruled(t, spec)
			_, err := w.votes(p, named("bob"), yes())
			require.NoError(t, err)
			record := w.open(session.WaitApproval)
			late := func() {
				w.clock.advance(2 * time.Minute)
				_, err := p.Sweep(context.Background())
				require.NoError(t, err)
			}
			cross := &storeHook{when: updateOf(store.KindWait), happens: late}
			cyd := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
			if first == "vote" {
				cross.happens = func() {}
			}
			_, err = cyd.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: named("cyd"), Answer: fill(record.Wait, yes())})
			if first == "expiry" {
				require.Equal(t, runtime.CodeExpired, codeOf(err))
			} else {
				require.NoError(t, err)
				late()
			}
			require.NoError(t, p.settle())
			require.Equal(t, first == "vote", w.effects.count("pay 5") == 1)
		})
	}
}

// TestAnswerRule_refuses is who may not answer, by each rule, whatever the door and whatever they say.
func TestAnswerRule_refuses(t *testing.T) {
	t.Parallel()
	always := func(change func(*tool.Spec[textIn])) tool.Spec[textIn] {
		s := tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn]}
		change(&s)
		return s
	}
	roles := always(func(s *tool.Spec[textIn]) { s.Roles = []string{"finance", "chief"} })
	both := always(func(s *tool.Spec[textIn]) { s.Roles, s.Who = []string{"finance"}, []string{"bob"} })
	other := always(func(s *tool.Spec[textIn]) { s.NotRequester = true })
	signed := always(func(s *tool.Spec[textIn]) { s.Assurance = tool.AssuranceSignedIn })
	two := always(func(s *tool.Spec[textIn]) { s.Need = 2 })
	link := always(func(s *tool.Spec[textIn]) { s.Assurance = tool.AssuranceLink; s.Roles = []string{"finance"} })
	for name, c := range map[string]struct {
		spec tool.Spec[textIn]
		by   runtime.Caller
		code runtime.Code
	}{
		"no role":                       {roles, runtime.Caller{Who: "bob"}, runtime.CodeNotAllowed},
		"another role":                  {roles, runtime.Caller{Who: "bob", Roles: []string{"sales", "Finance", ""}}, runtime.CodeNotAllowed},
		"one of the roles":              {roles, runtime.Caller{Who: "bob", Roles: []string{"sales", "chief"}}, ""},
		"a name that is a role":         {roles, runtime.Caller{Who: "finance"}, runtime.CodeNotAllowed},
		"a role that is a name":         {both, runtime.Caller{Who: "eve", Roles: []string{"bob"}}, runtime.CodeNotAllowed},
		"by name beside a role":         {both, runtime.Caller{Who: "bob"}, ""},
		"by role beside a name":         {both, runtime.Caller{Who: "eve", Roles: []string{"finance"}}, ""},
		"who asked":                     {other, runtime.Caller{Who: "ann"}, runtime.CodeRequesterMayNotAnswer},
		"who did not ask":               {other, runtime.Caller{Who: "bob"}, ""},
		"nobody":                        {other, runtime.Caller{}, runtime.CodeNotAllowed},
		"the user of a data file":       {other, runtime.Caller{Who: "bob", OneUser: true}, runtime.CodeRequesterMayNotAnswer},
		"a link, signed in":             {signed, runtime.Caller{Who: "bob", ByLink: true}, runtime.CodeSignInRequired},
		"known, not signed in":          {signed, runtime.Caller{Who: "bob", From: "slack", NotSignedIn: true}, runtime.CodeSignInRequired},
		"known, two needed":             {two, runtime.Caller{Who: "bob", From: "slack", NotSignedIn: true}, runtime.CodeSignInRequired},
		"known, did not ask":            {other, runtime.Caller{Who: "bob", From: "slack", NotSignedIn: true}, ""},
		"signed in":                     {signed, runtime.Caller{Who: "bob"}, ""},
		"the user of a file, signed in": {signed, runtime.Caller{Who: "bob", OneUser: true}, ""},
		"a link, two needed":            {two, runtime.Caller{Who: "bob", ByLink: true}, runtime.CodeSignInRequired},
		"nobody, two needed":            {two, runtime.Caller{}, runtime.CodeNotAllowed},
		"a link that is enough":         {link, runtime.Caller{Who: "bob", ByLink: true, Roles: []string{"finance"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := ruled(t, c.spec, func(a *agent.Agent) { a.Policy.AbandonOnMessage = true })
			ctx, wait := context.Background(), w.open(session.WaitApproval).Wait
			if c.code == "" {
				_, err := w.votes(p, c.by, yes())
				require.NoError(t, err)
				return
			}
			no := yes()
			no.Approved = new(false)
			for door, try := range map[string]func() error{
				"yes": func() error { _, err := w.votes(p, c.by, yes()); return err },
				"no":  func() error { _, err := w.votes(p, c.by, no); return err },
				"decide": func() error {
					_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Approve: []string{wait.ID}, Caller: c.by})
					return err
				},
				"reject": func() error {
					_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, RejectAll: true, Caller: c.by})
					return err
				},
				"all": func() error {
					_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, ApproveAll: true, Checkpoint: w.session().Checkpoint().String(), Caller: c.by})
					return err
				},
				"confirm": func() error {
					_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithConfirmation, Confirmation: runtime.Confirmation{Wait: wait.ID, Approved: true}, Caller: c.by})
					return err
				},
				"message": func() error {
					_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("go on"), Caller: c.by})
					return err
				},
				"send": func() error {
					_, err := p.Send(ctx, runtime.SendParams{Key: w.key, Message: llm.TextParts("go on"), Caller: c.by})
					return err
				},
			} {
				require.Equal(t, c.code, codeOf(try()), door)
			}
			require.NoError(t, p.settle())
			require.Equal(t, session.WaitOpen, w.waits()[0].State)
			require.Empty(t, w.waits()[0].Votes)
			require.Empty(t, w.effects.all())
			require.Contains(t, w.refusals(wait.ID), c.code, "it is on record")
		})
	}
}

// TestAnswerRule_edits: what several must approve is just what was shown.
func TestAnswerRule_edits(t *testing.T) {
	t.Parallel()
	edited := yes()
	edited.EditedInput = json.RawMessage(`{"text":"6"}`)
	w, p := ruled(t, fourEyes())
	_, err := w.votes(p, named("bob"), edited)
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
	long := yes()
	long.Reason = strings.Repeat("x", runtime.MaxReason+1)
	_, err = w.votes(p, named("bob"), long)
	require.Equal(t, runtime.CodeInputTooLarge, codeOf(err))
	require.Empty(t, w.waits()[0].Votes)

	spec := fourEyes()
	spec.Need = 1
	w, p = ruled(t, spec)
	_, err = w.votes(p, named("bob"), edited)
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "nobody else would approve what bob asks for")
	require.Contains(t, err.Error(), "reject it, with the reason")
	_, err = p.Decide(t.Context(), runtime.DecideParams{
		Key: w.key, Approve: []string{"w2-1"}, EditedInput: map[string]json.RawMessage{"w2-1": edited.EditedInput}, Caller: named("bob"),
	})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	require.Equal(t, session.WaitOpen, w.waits()[0].State)

	spec.Noes, spec.NotRequester = 2, false
	w, p = ruled(t, spec)
	_, err = w.votes(p, named("bob"), edited)
	require.NoError(t, err, "one yes decides")
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"pay 6": 1}, w.effects.all())
}

// TestAnswerRule_questions: roles and who asked count for what a tool asks, too, and one person answers.
func TestAnswerRule_questions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		who  []string // of the question
		by   runtime.Caller
		code runtime.Code
	}{
		"no role":             {nil, named("bob"), runtime.CodeNotAllowed},
		"the role":            {nil, runtime.Caller{Who: "bob", Roles: []string{"finance"}}, ""},
		"who asked":           {nil, runtime.Caller{Who: "ann", Roles: []string{"finance"}}, runtime.CodeRequesterMayNotAnswer},
		"of the question":     {[]string{"eve"}, named("eve"), ""},
		"not of the question": {[]string{"eve"}, runtime.Caller{Who: "bob", Roles: []string{"finance"}}, runtime.CodeNotAllowed},
		"of it, and asked":    {[]string{"ann"}, named("ann"), runtime.CodeRequesterMayNotAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			asks := tool.Define(tool.Spec[textIn]{Name: "pay", Roles: []string{"finance"}, Need: 2, NotRequester: true, Approve: func(textIn) bool { return false }},
				func(ctx context.Context, call *tool.Call, _ textIn) (string, error) {
					reply, err := call.Ask(ctx, tool.Question{ID: "q", Text: "How much?", Who: c.who})
					return reply.Text, err
				})
			w := newWorld(t, made, helper(made, script{"go": {calls("pay", `{"text":"5"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, asks) }))
			p := w.process()
			w.run(p, "go")
			wait := w.open(session.WaitQuestion).Wait
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: c.by, Answer: fill(wait, session.Answer{Text: new("7")})})
			require.Equal(t, c.code, codeOf(err), "%v", err)
			require.NoError(t, p.settle())
			require.Equal(t, c.code == "", w.session().Status == session.StatusCompleted)
		})
	}
}

// TestAnswerRule_stricter: a rule that was made stricter holds for an approval that is open, and for
// one that is stored and has not run, whatever the agent's policy about changes is.
func TestAnswerRule_stricter(t *testing.T) {
	t.Parallel()
	loose := tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], Who: []string{"bob", "cyd"}}
	for name, c := range map[string]struct {
		change func(*tool.Spec[textIn])
		stands bool // where the policy is to go on
	}{
		"others":       {func(s *tool.Spec[textIn]) { s.Who = []string{"cyd"} }, false},
		"a role":       {func(s *tool.Spec[textIn]) { s.Who, s.Roles = nil, []string{"finance"} }, false},
		"two":          {func(s *tool.Spec[textIn]) { s.Need = 2 }, false},
		"not who asks": {func(s *tool.Spec[textIn]) { s.NotRequester = true }, false},
		"signed in":    {func(s *tool.Spec[textIn]) { s.Assurance = tool.AssuranceSignedIn }, false},
		"more people":  {func(s *tool.Spec[textIn]) { s.Who = []string{"bob", "cyd", "dan"} }, true},
		"everybody":    {func(s *tool.Spec[textIn]) { s.Who = nil }, true},
		"him alone":    {func(s *tool.Spec[textIn]) { s.Who = []string{"bob"} }, true},
	} {
		for _, policy := range []session.ChangePolicy{session.ChangeGoOn, session.ChangeReask} {
			for _, when := range []string{"open", "stored"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, policy, when), func(t *testing.T) {
					t.Parallel()
					w, p := ruled(t, loose, func(a *agent.Agent) { a.Policy.OnChange = policy })
					if when == "stored" {
						_, err := w.votes(p, named("bob"), yes())
						require.NoError(t, err)
					}
					spec := loose
					c.change(&spec)
					made := w.effects
					p = w.deployed(func(a *agent.Agent) {
						a.Tools[len(a.Tools)-1] = tool.Define(spec, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
							made.add("pay " + in.Text)
							return "paid", nil
						})
						a.Policy.OnChange = policy
					})
					if when == "open" {
						_, err := w.votes(p, named("bob"), yes())
						require.NoError(t, err)
					}
					require.NoError(t, p.settle())
					if c.stands && policy == session.ChangeGoOn {
						require.Equal(t, 1, made.count("pay 5"))
						return
					}
					require.Zero(t, made.count("pay 5"))
					again := w.open(session.WaitApproval)
					require.Equal(t, session.WaitOpen, again.State)
					require.Equal(t, spec.Who, again.Wait.Who)
				})
			}
		}
	}
}

// TestRequesters are who asked for a task, or told it something: each of them is kept from deciding.
func TestRequesters(t *testing.T) {
	t.Parallel()
	spec := tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], NotRequester: true}
	pays := calls("pay", `{"text":"5"}`)
	for name, c := range map[string]struct {
		script script
		// happens makes the session ask for the approval.
		happens func(w *world, p *process) error
		want    []string
	}{
		"who began it": {script{"go": {pays}}, nil, []string{"ann"}},
		"who answered with a message": {script{"go": {needs("how much?")}, "five": {pays}}, func(w *world, p *process) error {
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: named("bob"), Answer: fill(w.open(session.WaitInput).Wait, session.Answer{Message: llm.TextParts("five")})})
			return err
		}, []string{"ann", "bob"}},
		"who sent a message": {script{"go": {says("hi")}, "five": {pays}}, func(w *world, p *process) error {
			_, err := p.Send(context.Background(), runtime.SendParams{Key: w.key, Message: llm.TextParts("five"), Start: true, Caller: named("bob")})
			return err
		}, []string{"ann", "bob"}},
		"who resumed with a message": {script{"go": {calls("deploy", `{"text":"1"}`)}, "five": {pays}}, func(w *world, p *process) error {
			_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("five"), Caller: named("bob")})
			return err
		}, []string{"ann", "bob"}},
		"who went back": {script{"go": {pays}}, func(w *world, p *process) error {
			_, err := p.GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Caller: named("bob")})
			return err
		}, []string{"ann", "bob"}},
		"who went back to the approval": {script{"go": {pays}}, func(w *world, p *process) error {
			_, err := p.GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: w.session().Checkpoint().String(), Caller: named("bob")})
			return err
		}, []string{"ann", "bob"}},
		"who forked it": {script{"go": {pays}}, func(w *world, p *process) error {
			fork := w.key
			fork.ID = "fork"
			_, err := p.Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: fork.ID, Caller: named("bob")})
			w.key = fork
			return err
		}, []string{"ann", "bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, c.script, func(a *agent.Agent) {
				a.Policy.AbandonOnMessage = true
				a.Tools = append(a.Tools, tool.Define(spec, func(context.Context, *tool.Call, textIn) (string, error) { return "paid", nil }))
			}))
			p := w.process()
			w.run(p, "go")
			if c.happens != nil {
				require.NoError(t, c.happens(w, p))
				require.NoError(t, p.settle())
			}
			require.Equal(t, c.want, w.open(session.WaitApproval).Wait.Requesters)
			for _, who := range c.want {
				_, err := w.votes(p, named(who), yes())
				require.Equal(t, runtime.CodeRequesterMayNotAnswer, codeOf(err), who)
			}
			_, err := w.votes(p, named("zoe"), yes())
			require.NoError(t, err)
		})
	}
}

// TestRequesters_mail: who tells a task something while it runs asks as well, from that very step on.
func TestRequesters_mail(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("hi")}, "pay bob": {calls("pay", `{"text":"5"}`)}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], NotRequester: true}, func(context.Context, *tool.Call, textIn) (string, error) { return "paid", nil }))
	}))
	p := w.process()
	w.start(p, "go")
	_, err := p.Send(context.Background(), runtime.SendParams{Key: w.key, Message: llm.TextParts("pay bob"), Caller: named("bob")})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, []string{"ann", "bob"}, w.open(session.WaitApproval).Wait.Requesters)
	require.Equal(t, []string{"bob"}, w.journal()[1].Requesters)
}

// TestAnswerRule_older_program: a program that knows no such rule refuses the entry and the wait by
// name, and decides nothing.
func TestAnswerRule_older_program(t *testing.T) {
	t.Parallel()
	w, _ := ruled(t, fourEyes())
	require.Equal(t, []string{session.NeedsAnswerRule}, w.open(session.WaitApproval).Wait.Needs)
	older := &hook{Store: w.store, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
		for i := range p.Entry.Waits {
			p.Entry.Waits[i].Needs = append(p.Entry.Waits[i].Needs, "a newer rule")
		}
		for i := range p.Items {
			if p.Items[i].Wait != nil {
				p.Items[i].Wait.Wait.Needs = append(p.Items[i].Wait.Wait.Needs, "a newer rule")
			}
		}
		return w.store.Commit(ctx, p)
	}}
	next := w.another()
	p := next.process(func(cfg *runtime.Config) { cfg.Store = older })
	next.run(p, "go")
	_, err := next.reader.Journal(context.Background(), next.key)
	var needs *journal.NeedsError
	require.ErrorAs(t, err, &needs)
	require.Equal(t, "a newer rule", needs.Word)
	_, err = next.process().Decide(context.Background(), runtime.DecideParams{Key: next.key, Approve: []string{"w2-1"}, Caller: named("bob")})
	require.Equal(t, runtime.CodeNewerNeeded, codeOf(err))
	require.Empty(t, next.effects.all())
}

// TestVotes_delegated: whoever a wait was delegated to votes in the place of who delegated it, so that
// both are one voice; and who asked for the task can neither delegate it nor be delegated to.
func TestVotes_delegated(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, fourEyes())
	delegates := func(by, to string) error {
		_, err := p.Act(context.Background(), runtime.ActParams{Key: w.key, Wait: w.open(session.WaitApproval).Wait.ID, Kind: session.ActDelegated, To: to, Caller: named(by)})
		return err
	}
	require.Equal(t, runtime.CodeRequesterMayNotAnswer, codeOf(delegates("ann", "zoe")))
	require.Error(t, delegates("bob", "ann"))
	require.NoError(t, delegates("bob", "zoe"))
	first, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	require.Equal(t, "bob", first.Answer.For)
	again, err := w.votes(p, named("bob"), yes())
	require.NoError(t, err)
	require.True(t, again.Repeated, "his voice was heard")
	no := yes()
	no.Approved = new(false)
	_, err = w.votes(p, named("bob"), no)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	require.NoError(t, p.settle())
	require.Empty(t, w.effects.all())
	require.Len(t, w.waits()[0].Votes, 1)
	_, err = w.votes(p, named("cyd"), yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())

	lines, err := p.Audit(context.Background(), w.key)
	require.NoError(t, err)
	told := map[session.AuditKind][]string{}
	for _, l := range lines {
		told[l.Kind] = append(told[l.Kind], l.Who)
	}
	require.Equal(t, []string{"bob"}, told[session.AuditDelegated])
	require.Equal(t, []string{"zoe", "cyd"}, told[session.AuditVoted])
	require.Equal(t, []string{"cyd"}, told[session.AuditAnswered])
	require.Contains(t, string(lines[0].Data), `"need":2`)
	require.NotContains(t, string(lines[0].Data), "zoe", "she was not among those who were asked")

	spec := fourEyes()
	spec.Noes = 2
	w, p = ruled(t, spec)
	_, err = p.Act(context.Background(), runtime.ActParams{Key: w.key, Wait: "w2-1", Kind: session.ActDismissed, Reason: "no need", Caller: named("bob")})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "nobody ends it alone")

	w, p = ruled(t, fourEyes())
	_, err = w.votes(p, named("bob"), yes())
	require.NoError(t, err)
	_, err = p.Act(context.Background(), runtime.ActParams{Key: w.key, Wait: "w2-1", Kind: session.ActDismissed, Reason: "no need", Caller: named("cyd")})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Empty(t, w.effects.all())
	require.Equal(t, session.AnswerDismissal, w.answered().Kind)
	require.Len(t, w.answered().Votes, 1)
}

// TestVotes_delegated_to_many: a wait that was delegated to several by one ends when too few voices are left,
// and who may vote by a role keeps a voice that nobody takes by delegating to them.
func TestVotes_delegated_to_many(t *testing.T) {
	t.Parallel()
	no := yes()
	no.Approved = new(false)
	spec := fourEyes()
	spec.Who, spec.Noes = []string{"ann", "bob", "cyd"}, 2
	w, p := ruled(t, spec)
	delegates := func(by runtime.Caller, to string) {
		_, err := p.Act(context.Background(), runtime.ActParams{Key: w.key, Wait: "w2-1", Kind: session.ActDelegated, To: to, Caller: by})
		require.NoError(t, err)
	}
	delegates(named("bob"), "dan")
	delegates(named("bob"), "eve")
	_, err := w.votes(p, named("cyd"), no)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.False(t, *w.answered().Approved, "bob, dan and eve are one voice, and two are needed")

	boss := func(who string) runtime.Caller {
		return runtime.Caller{Who: who, From: "test", Roles: []string{"boss"}}
	}
	spec.Who, spec.Roles = nil, []string{"boss"}
	w, p = ruled(t, spec)
	for _, to := range []string{"cyd", "dan", "guest"} {
		delegates(boss("bob"), to)
	}
	_, err = w.votes(p, boss("bob"), no)
	require.NoError(t, err)
	_, err = w.votes(p, named("guest"), yes())
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "who has no role has bob's voice")
	first, err := w.votes(p, boss("cyd"), yes())
	require.NoError(t, err)
	require.Empty(t, first.Answer.For)
	_, err = w.votes(p, boss("dan"), yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
}
