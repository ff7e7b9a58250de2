package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

const approvalHelp = `  y            run it with exactly these arguments, once you have seen all of them
  n [reason]   do not run it, and tell the agent why (so does an empty line)
  v            show it again, page by page
  e [JSON]     change the arguments (give all), then decide; both are recorded
  ?            this help and what the tool does
  Ctrl-C       decide later: the session stays paused, nothing runs
`

// notSeen says why there is no yes.
const notSeen = "Its arguments are not here as they would run: they are too large for the server to send, or were changed, so they cannot be shown. It can be rejected, or run with other arguments, but not approved as it is."

// notShown says why there is no yes yet.
const notShown = "You have not seen all of it: v shows it, page by page. Nobody approves what they did not see."

// seen reports whether the arguments of an approval are here as they would run.
// A server leaves out what it cannot send, and a yes counts for all of it.
func seen(w client.Wait) bool { return journal.Digest(w.Arguments) == w.Digest }

// CheckSeen refuses to approve a call, as it is, whose arguments this program
// could not have shown.
func CheckSeen(id string, w client.Wait, edited json.RawMessage) error {
	if edited != nil || seen(w) {
		return nil
	}
	return exit.Refusef(client.CodeInvalidAnswer, id, "%s: not approved. %s", screen.CleanLine(w.CallID), notSeen)
}

// askApproval asks whether a call may run. What is answered is bound to what
// was shown: the wait, its nonce and with it the arguments.
func (p *Person) askApproval(ctx context.Context, e Sessions, s client.Session, w client.Wait) (*client.SubmitRequest, error) {
	answer := client.SubmitRequest{WaitID: w.WaitID, Kind: session.AnswerApproval, ToolCallID: w.CallID, ApprovalID: w.ApprovalID}
	arguments := w.Arguments
	about := report.AgentName(s.Agent) + " wants to run " + p.bold(screen.CleanLine(w.Tool)) + "  (" + screen.CleanLine(w.WaitID) + ")"
	whole := false
	var preview *session.Preview // of what was edited
	show := func() (err error) {
		shown := w
		shown.Arguments = arguments
		if answer.EditedInput != nil {
			shown.Preview = preview
		}
		details := report.Details(shown, p.Place.Now(), "  ", p.width())
		several := false
		if whole, several, err = p.pages(ctx, "\n"+about+"\n"+details); err != nil {
			return err
		}
		if several { // what it is about has scrolled away
			p.print(fmt.Sprintf("\n%s with the arguments above: %d lines, %s\n", about, strings.Count(details, "\n"), report.Size(arguments)))
		}
		if !seen(w) && answer.EditedInput == nil {
			p.print(notSeen + "\n")
		}
		return nil
	}
	if err := show(); err != nil {
		return nil, err
	}
	for {
		question := "Run it? [y]es, [N]o, [e]dit, [v]iew, [?] help: "
		if !whole {
			question = "Not all of it was shown. [v]iew it, [N]o, [e]dit, [?] help: "
		}
		text, err := p.prompt(ctx, question)
		if err != nil {
			return nil, err
		}
		word, rest, _ := strings.Cut(text, " ")
		rest = strings.TrimSpace(rest)
		approved := false
		switch strings.ToLower(word) {
		case "y", "yes":
			if rest != "" {
				p.print("A yes stands alone: answer y, or n with a reason.\n")
				continue
			}
			if !seen(w) && answer.EditedInput == nil {
				p.print(notSeen + "\n")
				continue
			}
			if !whole {
				p.print(notShown + "\n")
				continue
			}
			approved = true
			answer.Approved = &approved
			return &answer, nil
		case "", "n", "no":
			answer.Approved, answer.Reason, answer.EditedInput = &approved, rest, nil
			return &answer, nil
		case "e", "edit":
			edited, err := p.edit(ctx, arguments, rest)
			if errors.Is(err, errLeft) {
				return nil, err
			}
			if t, ok := e.Tool(s.Agent, w.Tool); err == nil && ok {
				if edited, err = t.Effective(edited); err == nil { // what is shown next is what it gets
					preview = toolrun.Preview(t, edited)
				}
			} else if err == nil && w.Preview != nil {
				preview = &session.Preview{Failed: "only the server can make that of what you changed; it is kept with the answer"}
			}
			if wrong := (*tool.ArgumentError)(nil); errors.As(err, &wrong) {
				err = errors.New("not valid; give all arguments, also those that stay:" + wrong.List())
			}
			if err != nil {
				p.Screen.Complain("the arguments stay as they are: %v", err)
				continue
			}
			arguments = edited
			answer.EditedInput = edited
			if journal.Digest(edited) == w.Digest {
				answer.EditedInput = nil
			}
			if err := show(); err != nil {
				return nil, err
			}
		case "v", "view":
			if err := show(); err != nil {
				return nil, err
			}
		case "?", "h", "help":
			p.print(approvalHelp + p.aboutTool(e, s.Agent, w.Tool))
		default:
			p.print("Please answer y, n, e, v or ?.\n")
		}
	}
}

// AgreesToAll shows every approval that a decision would give, with the arguments
// it would run with, and asks whether that is meant. Only a yes is one.
func (p *Person) AgreesToAll(ctx context.Context, id string, approved, rejected []client.Wait) (bool, error) {
	list := "\nSession " + screen.CleanLine(id) + " waits for " + report.Things(approved) + ":\n" + report.ApprovalBlocks(approved, p.Place.Now(), p.width(), p.bold)
	for _, w := range rejected {
		list += "  rejected: " + report.Headline(w) + "  " + screen.CleanLine(w.WaitID) + "\n"
	}
	whole, several, err := p.pages(ctx, list)
	switch {
	case errors.Is(err, errLeft):
		return false, nil
	case err != nil:
		return false, err
	case !whole:
		p.print("Not all of it was shown, so nothing was decided.\n")
		return false, nil
	case several:
		p.print("\n" + approvedInShort(approved) + "\n")
	}
	what := "Approve all " + strconv.Itoa(len(approved))
	if len(approved) == 1 {
		what = "Approve it"
	}
	yes, left, err := p.yes(ctx, what+"?", "")
	if err == nil && !yes && !left {
		p.print("Nothing was decided.\n")
	}
	return yes, err
}

// approvedInShort names what a decision approves, each tool once.
func approvedInShort(approved []client.Wait) string {
	var names []string
	for _, w := range approved {
		names = append(names, w.Tool)
	}
	return "To be approved, as shown above: " + screen.Calls(names)
}

// aboutTool is what the registry says of a tool, for a person who decides over it.
func (p *Person) aboutTool(e Sessions, agent, name string) string {
	t, ok := e.Tool(agent, name)
	switch {
	case !ok && p.Place.Remote():
		return "\nWhat " + screen.CleanLine(name) + " does, only the server knows.\n"
	case !ok:
		return "\nThis program does not have the tool " + screen.CleanLine(name) + " any more.\n"
	}
	return "\n" + screen.CleanLine(name) + " (" + report.ToolNotes(t.Effect(), false, t.Client()) + ")\n" + screen.QuoteBlock(t.Description(), "  ", p.width())
}
