// Package prompt puts what a session waits for to the person at the terminal.
package prompt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Sessions is what asking needs of a connection to the sessions.
type Sessions interface {
	Waits(ctx context.Context, id string) ([]client.Wait, error)
	Submit(ctx context.Context, p client.SubmitParams) (client.Submitted, error)
	// Tool returns the definition of an agent's tool, where this program has it.
	Tool(agent, name string) (tool.Tool, bool)
}

// Config says who is asked, and through what; all of it is required.
type Config struct {
	// Stdin is what the person types on, the screen's stderr where the questions are.
	Stdin  io.Reader
	Screen *screen.Screen
	// Place is where the session lives.
	Place *place.Place
	// Env reads a variable of the environment: the person's editor.
	Env func(string) string
}

// Person can be asked, if there is one.
type Person struct {
	Config

	// NoInput says never to ask, also on a terminal.
	NoInput bool
	// Overtaken says that somebody else's answer came before the one typed here.
	Overtaken bool

	in *bufio.Reader
	// voted are the waits on which the person here has voted, and which wait for others.
	voted map[string]bool
}

// New returns the person at a terminal.
func New(cfg Config) *Person { return &Person{Config: cfg, voted: map[string]bool{}} }

func (p *Person) print(text string)       { p.Screen.Write(p.Screen.Stderr, text) }
func (p *Person) bold(text string) string { return p.Screen.Bold(p.Screen.Stderr, text) }
func (p *Person) width() int              { return screen.Width(p.Screen.Stderr) }

// errLeft says that the person went away without an answer; the wait stays open.
var errLeft = errors.New("left open")

// read returns the next line typed. An interrupt leaves the read behind; the
// process ends with it.
func (p *Person) read(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := p.in.ReadString('\n')
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

// There says whether there is somebody to ask: a person on a terminal who has not said otherwise.
func (p *Person) There() bool {
	_, in := screen.Terminal(p.Stdin)
	_, out := screen.Terminal(p.Screen.Stderr)
	return in && out && !p.NoInput && p.Screen.Form == screen.FormText
}

// prompt prints a question without a new line and reads the answer. What was
// typed before is thrown away: it cannot be meant for a question nobody saw.
// The caller has shown by now what the question is about.
func (p *Person) prompt(ctx context.Context, text string) (string, error) {
	if p.in == nil {
		p.in = bufio.NewReader(p.Stdin)
		private.Tidy(p.Place.Scratch())
	}
	fd, _ := screen.Terminal(p.Stdin)
	if err := flush(fd); err != nil {
		return "", fmt.Errorf("cannot ask on this terminal: %w", err)
	}
	_, _ = p.in.Discard(p.in.Buffered())
	p.print(text)
	answer, err := p.read(ctx)
	if err != nil {
		p.print("\n")
	}
	return answer, err
}

// Ask goes through the open waits of a paused session and brings what the
// person answers, one by one, so that an answer given is never lost. It reports
// whether there is something to work on now.
func (p *Person) Ask(ctx context.Context, e Sessions, s client.Session) (again bool, err error) {
	records, err := e.Waits(ctx, s.ID)
	if err != nil {
		return false, err
	}
	if s.Text != "" && !report.Claimed(s) {
		_, _, err := p.pages(ctx, "\n"+report.AgentName(s.Agent)+" says:\n"+screen.QuoteBlock(s.Text, "  ", p.width()))
		if errors.Is(err, errLeft) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	open := slices.DeleteFunc(slices.Clone(records), func(w client.Wait) bool { return w.State != session.WaitOpen })
	for _, record := range records {
		if !slices.ContainsFunc(open, func(w client.Wait) bool { return w.WaitID == record.WaitID }) {
			continue // also where somebody else has answered it since
		}
		if why := p.cannot(record); why != "" {
			p.Screen.Complain("%s %s", screen.CleanLine(record.WaitID), why)
			continue
		}
		answer, err := p.askOne(ctx, e, s, record)
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
		submitted, err := p.submit(ctx, e, s.ID, answer)
		switch {
		case err == nil && submitted.Continuation != client.ContinuationWaiting:
			return true, nil
		case err == nil:
			if open = submitted.Open; slices.ContainsFunc(open, func(w client.Wait) bool { return w.WaitID == record.WaitID }) {
				p.voted[record.WaitID] = true
				continue // others must vote, too: there is nothing to work on
			}
		case exit.Code("", err) == exit.Conflict:
			p.Screen.Complain("%v", err)
			p.Overtaken = true
			return true, nil // somebody else was first: look again at what is left
		case exit.CodeOf(err) == client.CodeInvalidAnswer:
			p.Screen.Complain("%v", err) // nothing was taken: ask once more
		default:
			return false, p.unheard(s.ID, err)
		}
		again = true
	}
	return again, nil
}

// cannot says why a wait is not asked about here; "" where it is.
func (p *Person) cannot(w client.Wait) string {
	mine := func(v session.Vote) bool { return !p.Place.Remote() && v.Who == p.Place.Who }
	switch {
	case p.voted[w.WaitID] || slices.ContainsFunc(w.Votes, mine):
		return fmt.Sprintf("waits for others: you have voted, and %d more must approve.", w.VotesMissing)
	case w.Rule != nil && w.Rule.NotRequester && !p.Place.Remote():
		return "may not be answered by who asked for the task, and a data file knows one user only. Serve it with adjourn dev, with a key for each person in its file of api-keys."
	}
	return ""
}

// submit brings an answer, and says what became of it once that is stored.
func (p *Person) submit(ctx context.Context, e Sessions, id string, answer *client.SubmitRequest) (client.Submitted, error) {
	submitted, err := e.Submit(ctx, client.SubmitParams{SessionID: id, Answer: *answer})
	switch {
	case err != nil:
	case submitted.Repeated && submitted.VotesMissing > 0:
		p.print(fmt.Sprintf("Your vote was stored before. %d more must approve.\n", submitted.VotesMissing))
	case submitted.Repeated:
		p.print("Already settled: the same answer was given before.\n")
	case submitted.VotesMissing > 0:
		p.print(fmt.Sprintf("Your vote is stored. %d more must approve.\n", submitted.VotesMissing))
	case answer.Approved != nil && !*answer.Approved:
		p.print("Rejected: it does not run, and the agent is told.\n")
	}
	return submitted, err
}

// unheard says what became of an answer that no server took in.
func (p *Person) unheard(id string, err error) error {
	switch {
	case errors.Is(err, client.ErrNotSent):
		return fmt.Errorf("your answer was not sent, the session still waits: %w", err)
	case p.Place.Remote() && exit.Class(err) == client.ClassUnavailable:
		return fmt.Errorf("nobody knows whether your answer arrived; look at session %s: %w", id, err)
	}
	return err
}

// askOne asks for one wait. Nil without an error means that it cannot be
// answered here, or was skipped.
func (p *Person) askOne(ctx context.Context, e Sessions, s client.Session, w client.Wait) (*client.SubmitRequest, error) {
	switch w.Kind {
	case session.WaitApproval:
		return p.askApproval(ctx, e, s, w)
	case session.WaitQuestion:
		return p.askQuestion(ctx, w)
	case session.WaitInput:
		if about := report.OwnText(s, w); about != "" {
			if _, _, err := p.pages(ctx, "\n"+screen.QuoteBlock(about, "  ", p.width())); err != nil {
				return nil, err
			}
		}
		text, err := p.prompt(ctx, "\nYour answer (an empty line leaves it for later): ")
		if err != nil || text == "" {
			return nil, leftIf(err)
		}
		return &client.SubmitRequest{WaitID: w.WaitID, Kind: session.AnswerMessage, Message: client.Text(text)}, nil
	case session.WaitUnknown:
		return p.askVerdict(ctx, w)
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

func (p *Person) askVerdict(ctx context.Context, w client.Wait) (*client.SubmitRequest, error) {
	about := "\nNobody knows whether " + p.bold(screen.CleanLine(w.Tool)) + " happened: its worker was cut off.\n"
	_, several, err := p.pages(ctx, about+report.Details(w, p.Place.Now(), "  ", p.width()))
	if err != nil {
		return nil, err
	}
	if several {
		p.print(about)
	}
	for {
		text, err := p.prompt(ctx, "Did it happen? [y]es, [n]o (an empty line leaves it for later): ")
		if err != nil || text == "" {
			return nil, leftIf(err)
		}
		answer := client.SubmitRequest{WaitID: w.WaitID, Kind: session.AnswerVerdict, ToolCallID: w.CallID}
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
func (p *Person) askQuestion(ctx context.Context, w client.Wait) (*client.SubmitRequest, error) {
	q := w.Question
	if q == nil {
		return nil, nil
	}
	_, several, err := p.pages(ctx, "\n"+p.bold(screen.CleanLine(w.Tool))+" asks:\n"+screen.QuoteBlock(q.Text, "  ", p.width())+p.choices(q))
	if err != nil {
		return nil, err
	}
	if several { // what it is about has scrolled away
		p.print("\n" + p.bold(screen.CleanLine(w.Tool)) + " asks: " + screen.Short(q.Text, max(p.width()-screen.Columns(w.Tool)-10, 20)) + "\n")
	}
	answer := &client.SubmitRequest{WaitID: w.WaitID, Kind: session.AnswerReply, ToolCallID: w.CallID, QuestionID: q.ID}
	none := noneOf(q)
	ask := map[session.QuestionKind]string{
		session.QuestionText:        "Your answer: ",
		session.QuestionChoice:      "Number (an empty line leaves it for later): ",
		session.QuestionMultiChoice: "Numbers (" + none + " for none of them; an empty line leaves it for later): ",
	}[q.Kind]
	for {
		text, err := p.prompt(ctx, ask)
		if err != nil {
			return nil, err
		}
		if q.Kind == session.QuestionText {
			if text == "" {
				// Enter came too early, or twice: an answer counts for good.
				p.print("An empty line is no answer; Ctrl-C leaves it for later.\n")
				continue
			}
			answer.Text = &text
			return answer, nil
		}
		if text == "" {
			return nil, errLeft
		}
		if q.Kind == session.QuestionMultiChoice && text == none {
			answer.Selected = []string{}
			return answer, nil
		}
		selected, bad := choose(q, text)
		switch {
		case bad == "?":
			if _, _, err := p.pages(ctx, p.choices(q)); err != nil {
				return nil, err
			}
			p.print(choiceHelp[q.Kind])
		case bad != "":
			p.print("There is no choice " + screen.CleanLine(bad) + ".\n")
		case q.Kind == session.QuestionChoice && len(selected) != 1:
			p.print("Please choose one.\n")
		default:
			answer.Selected = selected
			return answer, nil
		}
	}
}

// choiceHelp is what ? says beside the choices, shown again.
var choiceHelp = map[session.QuestionKind]string{
	session.QuestionChoice:      "Type the number that stands before the choice, or its id.\n",
	session.QuestionMultiChoice: "Type the numbers that stand before the choices, or ids, with spaces between.\n",
}

// choices are the choices there are, each behind its number.
func (p *Person) choices(q *session.Question) string {
	var b strings.Builder
	for i, choice := range q.Choices {
		label := choice.Label
		if label == "" {
			label = choice.ID
		}
		b.WriteString(screen.QuoteBlock(strconv.Itoa(i+1)+"  "+screen.CleanLine(label), "  ", p.width()))
		if choice.Description != "" {
			b.WriteString(screen.QuoteBlock("   "+screen.CleanLine(choice.Description), "  ", p.width()))
		}
	}
	return b.String()
}

// noneOf is the word that chooses nothing: one that is no choice.
func noneOf(q *session.Question) string {
	word := "0"
	for slices.ContainsFunc(q.Choices, func(choice session.Choice) bool { return choice.ID == word }) {
		word += "0"
	}
	return word
}

// choose reads numbers and ids; bad is the first word that is neither. A number is
// what stands before a choice on the screen, also where another one has it as its id.
func choose(q *session.Question, text string) (selected []string, bad string) {
	selected = []string{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		i := slices.IndexFunc(q.Choices, func(choice session.Choice) bool { return word == choice.ID })
		for n := range q.Choices {
			if word == strconv.Itoa(n+1) {
				i = n
			}
		}
		if i < 0 {
			return nil, word
		}
		selected = append(selected, q.Choices[i].ID)
	}
	return selected, ""
}
