package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// errLeft says that the person went away without an answer; the wait stays open.
var errLeft = errors.New("left open")

// read returns the next line typed. An interrupt leaves the read behind; the
// process ends with it.
func (c *cli) read(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := c.in.ReadString('\n')
		lines <- line{text: text, err: err}
	}()
	select {
	case <-ctx.Done():
		return "", errLeft
	case l := <-lines:
		if l.err != nil && (l.text == "" || !errors.Is(l.err, io.EOF)) {
			return "", errLeft
		}
		return strings.TrimSpace(l.text), nil
	}
}

// asks says whether there is somebody to ask: a person on a terminal who has not said otherwise.
func (c *cli) asks() bool {
	_, in := terminal(c.Stdin)
	_, out := terminal(c.Stderr)
	return in && out && !c.noInput && c.output == outputText
}

// prompt prints a question without a new line and reads the answer. What was
// typed before is thrown away: it cannot be meant for a question nobody saw.
// The caller has shown by now what the question is about.
func (c *cli) prompt(ctx context.Context, text string) (string, error) {
	if c.in == nil {
		c.in = bufio.NewReader(c.Stdin)
	}
	fd, _ := terminal(c.Stdin)
	if err := forget(fd); err != nil {
		return "", fmt.Errorf("cannot ask on this terminal: %w", err)
	}
	_, _ = c.in.Discard(c.in.Buffered())
	c.write(c.Stderr, text)
	answer, err := c.read(ctx)
	if err != nil {
		c.write(c.Stderr, "\n")
	}
	return answer, err
}

// ask goes through the open waits of a paused session and brings what the
// person answers, one by one, so that an answer given is never lost. It reports
// whether there is something to work on now.
func (c *cli) ask(ctx context.Context, e engine, k session.Key, m session.Manifest) (again bool, err error) {
	records, err := e.Waits(ctx, k)
	if err != nil {
		return false, err
	}
	if m.AgentMessage != "" {
		c.write(c.Stderr, "\n"+who(m.Agent)+" says:\n"+quoteBlock(m.AgentMessage, "  ", width(c.Stderr)))
	}
	for _, record := range records {
		if record.State != session.WaitOpen {
			continue
		}
		answer, err := c.askOne(ctx, e, m, record.Wait)
		if errors.Is(err, errLeft) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if answer == nil {
			continue
		}
		// Bound to the wait that was shown, whatever the session waits for by now.
		_, err = e.Submit(ctx, runtime.SubmitParams{Key: k, Answer: *answer, Caller: c.caller()})
		switch {
		case err == nil:
		case exitCode("", err) == exitConflict:
			c.complain("%v", err) // somebody else was first: look again at what is left
			c.overtaken = true
		case runtime.AsError(err).Code == runtime.CodeInvalidAnswer:
			c.complain("%v", err) // nothing was taken: ask once more
		default:
			return false, c.unheard(k, err)
		}
		again = true
	}
	return again, nil
}

// unheard says what became of an answer that no server took in.
func (c *cli) unheard(k session.Key, err error) error {
	switch {
	case errors.Is(err, client.ErrNotSent):
		return fmt.Errorf("your answer was not sent, the session still waits: %w", err)
	case c.remote() && class(err) == runtime.ClassUnavailable:
		return fmt.Errorf("nobody knows whether your answer arrived; look at session %s: %w", k.ID, err)
	}
	return err
}

// askOne asks for one wait. Nil without an error means that it cannot be
// answered here, or was skipped.
func (c *cli) askOne(ctx context.Context, e engine, m session.Manifest, w session.Wait) (*session.Answer, error) {
	switch w.Kind {
	case session.WaitApproval:
		return c.askApproval(ctx, e, m, w)
	case session.WaitQuestion:
		return c.askQuestion(ctx, w)
	case session.WaitInput:
		text, err := c.prompt(ctx, "\nYour answer (an empty line leaves it for later): ")
		if err != nil || text == "" {
			return nil, leftIf(err)
		}
		return &session.Answer{Wait: w.ID, Kind: session.AnswerMessage, Message: text}, nil
	case session.WaitUnknown:
		return c.askVerdict(ctx, w)
	case session.WaitClientTool, session.WaitChild:
		// Nobody types these; the manifest says which command brings them.
	}
	return nil, nil
}

// leftIf turns an empty answer into errLeft.
func leftIf(err error) error {
	if err != nil {
		return err
	}
	return errLeft
}

const approvalHelp = `  y            run it with exactly these arguments
  n [reason]   do not run it; the agent is told, with your reason (this is the default)
  e [JSON]     change the arguments, then decide; both are recorded
  ?            this help and what the tool does
  Ctrl-C       decide later: the session stays paused, nothing runs
`

// notSeen says why there is no yes.
const notSeen = "Its arguments are too large for the server to send, so they cannot be shown. It can be rejected, or run with other arguments, but not approved as it is."

// seen reports whether the arguments of an approval are here as they would run.
// A server leaves out what it cannot send, and a yes counts for all of it.
func seen(w session.Wait) bool { return session.Digest(w.Arguments) == w.Digest }

// checkSeen refuses to approve a call, as it is, whose arguments this program
// could not have shown.
func checkSeen(k session.Key, w session.Wait, edited json.RawMessage) error {
	if edited != nil || seen(w) {
		return nil
	}
	return &runtime.Error{Code: runtime.CodeInvalidAnswer, Session: k.ID, Message: cleanLine(w.Call) + ": not approved. " + notSeen}
}

// askApproval asks whether a call may run. What is answered is bound to what
// was shown: the wait, its nonce and with it the arguments.
func (c *cli) askApproval(ctx context.Context, e engine, m session.Manifest, w session.Wait) (*session.Answer, error) {
	answer := session.Answer{Wait: w.ID, Kind: session.AnswerApproval, ToolCallID: w.Call, ApprovalID: w.Nonce}
	arguments := w.Arguments
	show := func() {
		item := session.NewPendingItem(w)
		item.Arguments = arguments
		c.write(c.Stderr, "\n"+who(m.Agent)+" wants to run "+c.bold(c.Stderr, cleanLine(w.Tool))+"  ("+cleanLine(w.Call)+")\n"+details(item, "  ", width(c.Stderr)))
		if !seen(w) && answer.EditedInput == nil {
			c.write(c.Stderr, notSeen+"\n")
		}
	}
	show()
	for {
		text, err := c.prompt(ctx, "Run it? [y]es, [N]o, [e]dit, [?] help: ")
		if err != nil {
			return nil, err
		}
		word, rest, _ := strings.Cut(text, " ")
		rest = strings.TrimSpace(rest)
		approved := false
		switch strings.ToLower(word) {
		case "y", "yes":
			if rest != "" {
				c.write(c.Stderr, "A yes stands alone: answer y, or n with a reason.\n")
				continue
			}
			if !seen(w) && answer.EditedInput == nil {
				c.write(c.Stderr, notSeen+"\n")
				continue
			}
			approved = true
			answer.Approved = &approved
			return &answer, nil
		case "", "n", "no":
			answer.Approved, answer.Reason, answer.EditedInput = &approved, rest, nil
			return &answer, nil
		case "e", "edit":
			edited, err := c.edit(ctx, arguments, rest)
			if errors.Is(err, errLeft) {
				return nil, err
			}
			if t, ok := e.Tool(m.Agent, w.Tool); err == nil && ok {
				err = t.Validate(edited)
			}
			if err != nil {
				c.complain("the arguments stay as they are: %v", err)
				continue
			}
			arguments = edited
			answer.EditedInput = edited
			if session.Digest(edited) == w.Digest {
				answer.EditedInput = nil
			}
			show()
		case "?", "h", "help":
			c.write(c.Stderr, approvalHelp+c.aboutTool(e, m.Agent, w.Tool))
		default:
			c.write(c.Stderr, "Please answer y, n, e or ?.\n")
		}
	}
}

func (c *cli) askVerdict(ctx context.Context, w session.Wait) (*session.Answer, error) {
	item := session.NewPendingItem(w)
	c.write(c.Stderr, "\nNobody knows whether "+c.bold(c.Stderr, cleanLine(w.Tool))+" happened: its worker was cut off.\n"+details(item, "  ", width(c.Stderr)))
	for {
		text, err := c.prompt(ctx, "Did it happen? [y]es, [n]o (an empty line leaves it for later): ")
		if err != nil || text == "" {
			return nil, leftIf(err)
		}
		answer := session.Answer{Wait: w.ID, Kind: session.AnswerVerdict, ToolCallID: w.Call}
		switch strings.ToLower(text) {
		case "y", "yes":
			answer.Verdict = session.VerdictHappened
			return &answer, nil
		case "n", "no":
			answer.Verdict = session.VerdictNotHappened
			return &answer, nil
		}
	}
}

// askQuestion asks what a tool asks; choices are answered by number or by id.
func (c *cli) askQuestion(ctx context.Context, w session.Wait) (*session.Answer, error) {
	q := w.Question
	if q == nil {
		return nil, nil
	}
	c.write(c.Stderr, "\n"+c.bold(c.Stderr, cleanLine(w.Tool))+" asks:\n"+quoteBlock(q.Text, "  ", width(c.Stderr)))
	for i, choice := range q.Choices {
		label := choice.Label
		if label == "" {
			label = choice.ID
		}
		c.write(c.Stderr, quoteBlock(strconv.Itoa(i+1)+"  "+cleanLine(label), "  ", width(c.Stderr)))
	}
	answer := &session.Answer{Wait: w.ID, Kind: session.AnswerReply, ToolCallID: w.Call, QuestionID: q.ID}
	ask := map[session.QuestionKind]string{
		session.QuestionText:        "Your answer: ",
		session.QuestionChoice:      "Number (an empty line leaves it for later): ",
		session.QuestionMultiChoice: "Numbers, separated by spaces (an empty line means none of them): ",
	}[q.Kind]
	for {
		text, err := c.prompt(ctx, ask)
		if err != nil {
			return nil, err
		}
		if q.Kind == session.QuestionText {
			answer.Text = &text
			return answer, nil
		}
		if text == "" && q.Kind == session.QuestionChoice {
			return nil, errLeft
		}
		selected, bad := choose(q, text)
		switch {
		case bad != "":
			c.write(c.Stderr, "There is no choice "+cleanLine(bad)+".\n")
		case q.Kind == session.QuestionChoice && len(selected) != 1:
			c.write(c.Stderr, "Please choose one.\n")
		default:
			answer.Selected = selected
			return answer, nil
		}
	}
}

// choose reads numbers and ids; bad is the first word that is neither.
func choose(q *session.Question, text string) (selected []string, bad string) {
	selected = []string{}
words:
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		for i, choice := range q.Choices {
			if word == strconv.Itoa(i+1) || word == choice.ID {
				selected = append(selected, choice.ID)
				continue words
			}
		}
		return nil, word
	}
	return selected, ""
}

// valid returns JSON, or says what is wrong with it.
func valid(text string) (json.RawMessage, error) {
	raw := json.RawMessage(strings.TrimSpace(text))
	if len(raw) == 0 {
		return nil, errors.New("this is empty, not JSON")
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, errors.New("not valid JSON: " + err.Error())
	}
	return raw, nil
}
