package prompt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// engine has waits, and takes answers or refuses them.
type engine struct {
	waits   []client.Wait
	refuse  error
	answers []client.SubmitRequest
	tool    *tool.Tool
}

func (e *engine) Waits(context.Context, string) ([]client.Wait, error) { return e.waits, nil }

func (e *engine) Submit(_ context.Context, p client.SubmitParams) (client.Submitted, error) {
	if p.SessionID != id {
		return client.Submitted{}, errors.New("nobody knows what this answers")
	}
	e.answers = append(e.answers, p.Answer)
	return client.Submitted{}, e.refuse
}

func (e *engine) Tool(string, string) (tool.Tool, bool) {
	if e.tool == nil {
		return tool.Tool{}, false
	}
	return *e.tool, true
}

const id = "s"

func open(w client.Wait) client.Wait {
	w.WaitID, w.State = "w2-1", session.WaitOpen
	return w
}

func approval(arguments string) client.Wait {
	raw := json.RawMessage(arguments)
	return client.Wait{Kind: session.WaitApproval, CallID: "c2-1", Tool: "deploy", ApprovalID: "n", Arguments: raw, Digest: journal.Digest(raw)}
}

func question(kind session.QuestionKind, ids ...string) client.Wait {
	q := &session.Question{ID: "q", Kind: kind, Text: "Which?"}
	for _, id := range ids {
		q.Choices = append(q.Choices, session.Choice{ID: id})
	}
	return client.Wait{Kind: session.WaitQuestion, CallID: "c2-1", Tool: "pick", Question: q}
}

// sit returns a person at a terminal, and the terminal's other end.
func sit(t *testing.T, env map[string]string) (*prompt.Person, *os.File) {
	t.Helper()
	far, near, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	require.NoError(t, far.SetReadDeadline(time.Now().Add(2*time.Minute)))
	getenv := func(name string) string { return env[name] }
	s := screen.New(screen.Config{Name: "adjourn", Stdout: near, Stderr: near, Env: getenv})
	where := place.New(place.Config{Program: "adjourn", Env: getenv, Screen: s})
	where.UseData(filepath.Join(t.TempDir(), "a.db"))
	return prompt.New(prompt.Config{Stdin: near, Screen: s, Place: where, Env: getenv}), far
}

func ptr(text string) *string { return &text }

// talk waits for each prompt and types what stands beside it.
func talk(t *testing.T, far *os.File, typed [][2]string) (all string) {
	t.Helper()
	seen, buffer := "", make([]byte, 4096)
	for _, turn := range typed {
		for !strings.Contains(seen, turn[0]) {
			n, err := far.Read(buffer)
			all += string(buffer[:n])
			seen += string(buffer[:n])
			require.NoError(t, err, "waiting for %q, saw: %s", turn[0], all)
		}
		_, seen, _ = strings.Cut(seen, turn[0])
		_, err := far.WriteString(turn[1])
		require.NoError(t, err)
	}
	return all
}

func TestAsk(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	words := "blue, please"
	const (
		run    = "[?] help: "
		answer = "Your answer: "
		number = "leaves it for later): "
		many   = "(0 for none of them; an empty line leaves it for later): "
	)
	for name, c := range map[string]struct {
		wait  client.Wait
		env   map[string]string
		typed [][2]string
		want  *client.SubmitRequest // beside the wait's id; nil: nothing is answered
		says  string
	}{
		"yes":         {wait: approval(`{"service":"web"}`), typed: [][2]string{{run, "y\n"}}, want: &client.SubmitRequest{Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &yes}, says: `| {`},
		"no, why":     {wait: approval(`{}`), typed: [][2]string{{run, "n not today\n"}}, want: &client.SubmitRequest{Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &no, Reason: "not today"}},
		"return":      {wait: approval(`{}`), typed: [][2]string{{run, "\n"}}, want: &client.SubmitRequest{Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &no}},
		"help first":  {wait: approval(`{}`), typed: [][2]string{{run, "?\n"}, {run, "what\n"}, {run, "n\n"}}, want: &client.SubmitRequest{Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &no}, says: "does not have the tool deploy any more"},
		"edit inline": {wait: approval(`{"a":1}`), typed: [][2]string{{run, "e {\"a\":\n"}, {run, "e {\"a\":2}\n"}, {run, "y\n"}}, want: &client.SubmitRequest{Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &yes, EditedInput: json.RawMessage(`{"a":2}`)}, says: "the arguments stay as they are: not valid JSON"},
		"edit back":   {wait: approval(`{"a":1}`), typed: [][2]string{{run, "e {\"a\":2}\n"}, {run, "e {\"a\":1}\n"}, {run, "y\n"}}, want: &client.SubmitRequest{Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &yes}},
		"edit in an editor": {
			wait: approval(`{"a":1}`), env: map[string]string{"EDITOR": `echo '{"a": 7}' >`}, typed: [][2]string{{run, "e\n"}, {run, "y\n"}},
			want: &client.SubmitRequest{Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &yes, EditedInput: json.RawMessage(`{"a": 7}`)},
		},
		"left":            {wait: approval(`{}`), typed: [][2]string{{run, "\x04"}}},
		"not shown":       {wait: client.Wait{Kind: session.WaitApproval, CallID: "c2-1", Tool: "deploy", Digest: "of more"}, typed: [][2]string{{run, "y\n"}, {run, "\x04"}}, says: "cannot be shown"},
		"words":           {wait: question(session.QuestionText), typed: [][2]string{{answer, words + "\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Text: &words}},
		"by number":       {wait: question(session.QuestionChoice, "red", "blue"), typed: [][2]string{{number, "3\n"}, {number, "1 2\n"}, {number, "2\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"blue"}}, says: "There is no choice 3."},
		"help, choices":   {wait: question(session.QuestionChoice, "red", "blue"), typed: [][2]string{{number, "?\n"}, {"  | 2  blue\r\n", ""}, {"the number that stands before the choice, or its id", ""}, {number, "2\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"blue"}}},
		"help, several":   {wait: question(session.QuestionMultiChoice, "red", "blue"), typed: [][2]string{{many, "?\n"}, {"  | 2  blue\r\n", ""}, {"numbers that stand before the choices, or ids, with spaces between", ""}, {many, "1\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"red"}}},
		"? is a choice":   {wait: question(session.QuestionChoice, "?", "blue"), typed: [][2]string{{number, "?\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"?"}}},
		"? is a text":     {wait: question(session.QuestionText), typed: [][2]string{{answer, "?\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Text: ptr("?")}},
		"by id":           {wait: question(session.QuestionChoice, "red", "blue"), typed: [][2]string{{number, "red\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"red"}}},
		"number, not id":  {wait: question(session.QuestionChoice, "2", "4", "6"), typed: [][2]string{{number, "2\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"4"}}},
		"id that is none": {wait: question(session.QuestionChoice, "2", "4", "6"), typed: [][2]string{{number, "6\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"6"}}},
		"none yet":        {wait: question(session.QuestionChoice, "red", "blue"), typed: [][2]string{{number, "\n"}}},
		"several":         {wait: question(session.QuestionMultiChoice, "red", "blue", "green"), typed: [][2]string{{many, "3, red\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{"green", "red"}}},
		"none of them":    {wait: question(session.QuestionMultiChoice, "red"), typed: [][2]string{{many, "0\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{}}},
		"none, and a 0":   {wait: question(session.QuestionMultiChoice, "0"), typed: [][2]string{{"(00 for none of them; ", "00\n"}}, want: &client.SubmitRequest{Kind: session.AnswerReply, ToolCallID: "c2-1", QuestionID: "q", Selected: []string{}}},
		"several, later":  {wait: question(session.QuestionMultiChoice, "red"), typed: [][2]string{{many, "\n"}}},
		"no words":        {wait: question(session.QuestionText), typed: [][2]string{{answer, "\n"}, {answer, "\x04"}}, says: "An empty line is no answer"},
		"verdict":         {wait: client.Wait{Kind: session.WaitUnknown, CallID: "c2-1", Tool: "pay"}, typed: [][2]string{{number, "perhaps\n"}, {number, "yes\n"}}, want: &client.SubmitRequest{Kind: session.AnswerVerdict, ToolCallID: "c2-1", Verdict: session.VerdictHappened}},
		"no verdict":      {wait: client.Wait{Kind: session.WaitUnknown, CallID: "c2-1", Tool: "pay"}, typed: [][2]string{{number, "\n"}}},
		"input":           {wait: client.Wait{Kind: session.WaitInput}, typed: [][2]string{{number, "go on\n"}}, want: &client.SubmitRequest{Kind: session.AnswerMessage, Message: client.Text("go on")}},
		"nobody's here":   {wait: client.Wait{Kind: session.WaitClientTool}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, far := sit(t, c.env)
			require.True(t, p.There())
			e := &engine{waits: []client.Wait{{Kind: session.WaitApproval, State: session.WaitAnswered}, open(c.wait)}}
			done := make(chan error, 1)
			var again bool
			go func() {
				var err error
				again, err = p.Ask(t.Context(), e, client.Session{ID: id, Agent: "toy", Text: "about to go"})
				done <- err
			}()
			all := talk(t, far, c.typed)
			require.NoError(t, <-done)
			require.Contains(t, all, c.says)
			for line := range strings.Lines(all) {
				if before, _, found := strings.Cut(line, "): "); found {
					require.Less(t, len(before+"): "), 80, "a prompt fits on a line: %s", line)
				}
			}
			require.Equal(t, c.want != nil, again)
			require.False(t, p.Overtaken)
			if c.want == nil {
				require.Empty(t, e.answers)
				return
			}
			c.want.WaitID = "w2-1"
			require.Equal(t, []client.SubmitRequest{*c.want}, e.answers)
		})
	}
}

// TestRefusedAnswers: what became of an answer is said, and only what another one
// could mend is asked again.
func TestRefusedAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse    error
		again     bool
		overtaken bool
		says      string
	}{
		"too late": {refuse: &client.Error{Problem: client.Problem{Code: string(client.CodeAlreadyAnswered), Detail: "bob was first"}}, again: true, overtaken: true},
		"invalid":  {refuse: &client.Error{Problem: client.Problem{Code: string(client.CodeInvalidAnswer), Detail: "not that one"}}, again: true},
		"not sent": {refuse: fmt.Errorf("post: %w", client.ErrNotSent), says: "your answer was not sent, the session still waits"},
		"broken":   {refuse: errors.New("disk full"), says: "disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, far := sit(t, nil)
			e := &engine{waits: []client.Wait{open(approval(`{}`))}, refuse: c.refuse}
			done := make(chan error, 1)
			var again bool
			go func() {
				var err error
				again, err = p.Ask(t.Context(), e, client.Session{ID: id})
				done <- err
			}()
			talk(t, far, [][2]string{{"[?] help: ", "y\n"}})
			err := <-done
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
			require.Equal(t, c.again, again)
			require.Equal(t, c.overtaken, p.Overtaken)
		})
	}
}

// TestAsk_not_asked: whoever has voted, or may not answer here, is told so and not asked.
func TestAsk_not_asked(t *testing.T) {
	t.Parallel()
	voted, other := open(approval(`{"a":1}`)), open(approval(`{"a":1}`))
	voted.Rule, voted.Votes, voted.VotesMissing = &session.AnswerRule{Need: 2}, []session.Vote{{Approved: true}}, 1
	other.Rule = &session.AnswerRule{NotRequester: true}
	for name, c := range map[string]struct {
		wait client.Wait
		says string
	}{"voted": {voted, "you have voted, and 1 more must approve"}, "who asked": {other, "adjourn dev"}} {
		p, far := sit(t, nil)
		e := &engine{waits: []client.Wait{c.wait}}
		again, err := p.Ask(t.Context(), e, client.Session{ID: id})
		require.NoError(t, err, name)
		require.False(t, again, name)
		require.Empty(t, e.answers, name)
		said := make([]byte, 4096)
		n, err := far.Read(said)
		require.NoError(t, err)
		require.Contains(t, strings.Join(strings.Fields(string(said[:n])), " "), c.says, name)
	}
}

func TestThere(t *testing.T) {
	t.Parallel()
	p, _ := sit(t, nil)
	require.True(t, p.There())
	p.NoInput = true
	require.False(t, p.There(), "never ask, also on a terminal")
	p.NoInput = false
	p.Screen.Form = screen.FormJSON
	require.False(t, p.There(), "a program reads what is printed")
	p.Screen.Form = screen.FormText
	p.Stdin = strings.NewReader("y\n")
	require.False(t, p.There(), "no terminal, nobody at it")
}

func TestReadJSON(t *testing.T) {
	t.Parallel()
	raw, err := prompt.ReadJSON(" {\"a\": 1}\n")
	require.NoError(t, err)
	require.Equal(t, `{"a": 1}`, string(raw))
	for text, says := range map[string]string{"": "empty", " \n": "empty", "{": "not valid JSON", "{} {}": "not valid JSON"} {
		_, err := prompt.ReadJSON(text)
		require.ErrorContains(t, err, says, text)
	}
}

func TestCheckSeen(t *testing.T) {
	t.Parallel()
	w := approval(`{"service":"web"}`)
	require.NoError(t, prompt.CheckSeen(id, w, nil))
	w.Arguments = json.RawMessage(`"[left out: 30000 bytes]"`)
	err := prompt.CheckSeen(id, w, nil)
	require.ErrorContains(t, err, "c2-1: not approved")
	require.Equal(t, client.CodeInvalidAnswer, exit.CodeOf(err))
	require.NoError(t, prompt.CheckSeen(id, w, json.RawMessage(`{}`)), "other arguments are known")
}

// TestEditedPreview: what was edited is shown as the tool's function would get it, with a preview of its
// own, before it is agreed to; where only a server could make that, it says so.
func TestEditedPreview(t *testing.T) {
	t.Parallel()
	type in struct {
		Cents int    `json:"cents"`
		To    string `json:"to"`
	}
	pay := tool.Define(tool.Spec[in]{
		Name: "deploy", Properties: map[string]json.RawMessage{"to": json.RawMessage(`{"default":"ada"}`)},
		Show: func(i in) tool.Preview { return tool.Preview{Title: fmt.Sprintf("%d cents to %s", i.Cents, i.To)} },
	}, func(context.Context, *tool.Call, in) (int, error) { return 0, nil })
	require.NoError(t, pay.Err())
	for name, c := range map[string]struct {
		tool *tool.Tool
		says string
		want string
	}{
		"here":        {&pay, "| 7 cents to ada", `{"cents":7,"to":"ada"}`},
		"at a server": {nil, "only the server can make that", `{"cents":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, far := sit(t, nil)
			w := open(approval(`{"cents":5,"to":"bob"}`))
			w.Preview, w.Claim = &session.Preview{Title: "5 cents to bob"}, "bob asked for it"
			e := &engine{waits: []client.Wait{w}, tool: c.tool}
			done := make(chan error, 1)
			go func() {
				_, err := p.Ask(t.Context(), e, client.Session{ID: id, Agent: "toy", Text: w.Claim, Pause: &client.Pause{Pending: []client.Wait{w}}})
				done <- err
			}()
			first := talk(t, far, [][2]string{{"[?] help: ", "e {\"cents\":7}\n"}})
			require.Contains(t, first, "| 5 cents to bob")
			require.Equal(t, 1, strings.Count(first, "bob asked for it"))
			require.Less(t, strings.Index(first, `"to": "bob"`), strings.Index(first, "the agent's claim:"), "below the arguments")
			second := talk(t, far, [][2]string{{"[?] help: ", "y\n"}})
			require.NoError(t, <-done)
			require.Contains(t, second, c.says)
			require.NotContains(t, second, "5 cents to bob")
			require.Len(t, e.answers, 1)
			require.JSONEq(t, c.want, string(e.answers[0].EditedInput))
		})
	}
}
