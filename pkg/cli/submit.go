package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/answers"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// submitFlags are the flags of submit.
type submitFlags struct {
	set *pflag.FlagSet
	// waitID is what is answered, if named; else call is.
	waitID   string
	named    bool
	call     string
	result   string
	failure  string
	reply    string
	choices  []string
	verdict  string
	approve  bool
	reject   bool
	edit     string
	reason   string
	noResume bool
	standing answers.Standing
	wait     work.Stay
}

func (c *cli) submitCommand() *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit session {wait | --call call} answer",
		Short: "Answer one thing a session waits for",
		Long: `Answer one wait and leave the others open. When nothing is open any more the
session goes on at once, unless --no-resume says that the answer is only stored.

The wait is named by its id (w2-1), which stands beside it wherever it is shown
(wait_id in JSON). A tool that runs on your side may be named by its call
instead.

  --result, --error   of a tool that runs on your side
  --reply, --select   to a question: words, or the id of a choice
  --verdict           happened or not_happened, of a side effect nobody knows
                      the outcome of
  --approve, --reject, --edit   of one approval (several at once: resume)
  --approve --standing          and let later calls like it run unasked

In a printed command ANSWER, CHOICE, VERDICT and JSON are words to replace: as
they stand they are refused.

The first answer wins. The same answer given again changes nothing; another one
exits with 5.`,
		Example: `  adjourn submit SESSION w2-1 --reply "Ada"
  adjourn submit SESSION w2-1 --select red --select blue
  adjourn submit SESSION w2-1 --approve --standing 2h --allow 'amount<=500'
  adjourn submit SESSION w2-1 --result '{"city": "Bern"}'
  adjourn submit SESSION --call c2-1 --result '{"city": "Bern"}'`,
		Args:              sessionAndOne,
		ValidArgsFunction: c.completeSessionAndWait,
		RunE: c.do(func(ctx context.Context, args []string) error {
			if len(args) == 2 {
				f.waitID, f.named = args[1], true
			}
			return c.submit(ctx, f, args[0])
		}),
	}
	flags := cmd.Flags()
	f.set = flags
	flags.StringVar(&f.call, "call", "", "`id` of the call whose result or error this is, instead of its wait")
	flags.StringVar(&f.result, "result", "", "the tool's result as `JSON`; - reads it from stdin")
	flags.StringVar(&f.failure, "error", "", "`text` of the tool's error")
	flags.StringVar(&f.reply, "reply", "", "`text` of the reply to a question")
	flags.StringArrayVar(&f.choices, "select", nil, "`id` of the choice; several times for several, \"\" for none")
	flags.StringVar(&f.verdict, "verdict", "", "`word`: happened or not_happened; --result may say what came of it")
	decisionVar(flags, &f.approve, "approve", "approve what waits")
	decisionVar(flags, &f.reject, "reject", "reject what waits")
	flags.StringVar(&f.edit, "edit", "", "approve with other arguments, as `JSON`")
	flags.StringVar(&f.reason, "reason", "", "`text` that goes with --approve, --reject or --verdict")
	flags.BoolVar(&f.noResume, "no-resume", false, "only store the answer: resume goes on later")
	f.standing.Register(flags)
	f.wait.Register(flags)
	_ = cmd.RegisterFlagCompletionFunc("verdict", cobra.FixedCompletions([]string{string(session.VerdictHappened), string(session.VerdictNotHappened)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) submit(ctx context.Context, f submitFlags, id string) error {
	if err := f.wait.Bound(c.Place); err != nil {
		return err
	}
	answer, err := c.answer(f)
	if err == nil {
		answer.Standing, err = f.standing.Given(answer.Approved != nil && *answer.Approved && answer.EditedInput == nil)
	}
	if err != nil {
		return err
	}
	e, err := c.Open(ctx, true)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	waits, err := answers.WaitsOf(ctx, e, id)
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	if f.named {
		err = waits.Bind(ctx, f.waitID, &answer)
	} else {
		err = waits.BindCall(ctx, f.call, &answer)
	}
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	if answer.Standing != nil {
		if preview, err := f.standing.Show(ctx, e, id, answer, c.Talk); err != nil || f.standing.Preview {
			return c.previewed(ctx, e, id, preview, err)
		}
	}
	if f.noResume {
		answer.AutoResume = new(bool)
	}
	submitted, err := e.Submit(ctx, client.SubmitParams{SessionID: id, Answer: answer})
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	c.did = "the answer is stored"
	answers.Tell(c.Talk, submitted)
	interrupted := submitted.Session != nil && submitted.Session.Status == session.StatusInterrupted
	if f.noResume || interrupted || submitted.Continuation == client.ContinuationStored {
		c.Talk("The answer is stored.")
	}
	if f.noResume || interrupted { // only a resume goes on
		return c.taken(ctx, e, id)
	}
	return c.drive(ctx, e, id, &f.wait)
}

// previewed ends a submit that only looks, or may not give what it asks for.
func (c *cli) previewed(ctx context.Context, e *place.Connection, id string, preview session.PermissionPreview, err error) error {
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	if c.Form == screen.FormJSON {
		c.JSON(preview)
	}
	return nil
}

// answer reads the one answer the flags hold.
func (c *cli) answer(f submitFlags) (client.SubmitRequest, error) {
	if err := c.target(f); err != nil {
		return client.SubmitRequest{}, err
	}
	var given []string
	for _, name := range []string{"result", "error", "reply", "select", "verdict", "approve", "reject", "edit"} {
		if f.set.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if f.set.Changed("reason") && !slices.ContainsFunc(given, takesReason) {
		return client.SubmitRequest{}, exit.Usagef("--reason goes with --approve, --reject or --verdict")
	}
	switch said := strings.Join(given, " "); said {
	case "--result":
		raw, err := c.result(f.result)
		return client.SubmitRequest{Kind: session.AnswerClientTool, Result: raw}, err
	case "--error":
		if f.failure == "" {
			return client.SubmitRequest{}, exit.Usagef("--error needs a text: the agent is told what went wrong")
		}
		return client.SubmitRequest{Kind: session.AnswerClientTool, Error: f.failure}, nil
	case "--reply":
		if strings.TrimSpace(f.reply) == "" {
			// As a rule a variable of the shell which was never set, and it would count for good.
			return client.SubmitRequest{}, exit.Usagef("--reply is empty: it needs a text that is more than white space")
		}
		return client.SubmitRequest{Kind: session.AnswerReply, Text: &f.reply}, nil
	case "--select":
		return client.SubmitRequest{Kind: session.AnswerReply, Selected: selection(f.choices)}, nil
	case "--verdict", "--result --verdict":
		return c.verdictAnswer(f)
	case "--approve", "--approve --edit", "--edit", "--reject":
		return approvalAnswer(f)
	case "":
		return client.SubmitRequest{}, exit.Usagef("no answer given: use one of --result, --error, --reply, --select, --verdict, --approve, --reject, --edit")
	default:
		return client.SubmitRequest{}, exit.Usagef("%s cannot go together: one answer at a time", said)
	}
}

func takesReason(flag string) bool {
	return slices.Contains([]string{"--approve", "--reject", "--edit", "--verdict"}, flag)
}

// target refuses flags that do not name exactly one thing that waits.
func (c *cli) target(f submitFlags) error {
	call := f.set.Changed("call")
	switch {
	case f.named && call:
		return exit.Usagef("%s and --call %s both name what is answered: give one of them", f.waitID, f.call)
	case f.named && f.waitID == "":
		return exit.Usagef("the wait is empty: its id is in what this prints: %s", c.Command("inbox"))
	case call && strings.HasPrefix(f.call, "w"):
		return exit.Usagef("--call names a call, and %s is a wait: write it behind the session, without --call", f.call)
	case !f.named && !call:
		return exit.Usagef("which wait? Its id, such as w2-1, goes behind the session; it is in the manifest and in what this prints: %s", c.Command("inbox"))
	}
	return nil
}

func (c *cli) verdictAnswer(f submitFlags) (client.SubmitRequest, error) {
	answer := client.SubmitRequest{Kind: session.AnswerVerdict, Verdict: session.Verdict(f.verdict)}
	if f.verdict == report.WordVerdict {
		return answer, exit.Usagef("--verdict %s", report.Replace(f.verdict, fmt.Sprintf("one of these there: %s, %s", session.VerdictHappened, session.VerdictNotHappened)))
	}
	if answer.Verdict != session.VerdictHappened && answer.Verdict != session.VerdictNotHappened {
		return answer, exit.Usagef("--verdict %q: use %s or %s", f.verdict, session.VerdictHappened, session.VerdictNotHappened)
	}
	answer.Reason = f.reason
	if !f.set.Changed("result") {
		return answer, nil
	}
	if answer.Verdict == session.VerdictNotHappened {
		return answer, exit.Usagef("--result cannot go with --verdict %s: what did not happen has none. --reason says more", answer.Verdict)
	}
	raw, err := c.result(f.result)
	answer.Result = raw
	return answer, err
}

func approvalAnswer(f submitFlags) (client.SubmitRequest, error) {
	approved := !f.reject
	answer := client.SubmitRequest{Kind: session.AnswerApproval, Approved: &approved, Reason: f.reason}
	if !f.set.Changed("edit") {
		return answer, nil
	}
	raw, err := prompt.ReadJSON(f.edit)
	if wait, text, found := strings.Cut(f.edit, "="); err != nil && found && strings.HasPrefix(wait, "w") {
		return answer, exit.Usagef("--edit takes the JSON alone here, for the wait stands behind the session: --edit %s", place.Quote(text))
	}
	if err != nil {
		return answer, exit.Usagef("--edit: %v", err)
	}
	answer.EditedInput = raw
	return answer, nil
}

func (c *cli) result(text string) (json.RawMessage, error) {
	if text == "-" {
		all, err := io.ReadAll(io.LimitReader(c.Stdin, client.MaxInput+1))
		if err != nil {
			return nil, exit.Usagef("read the result from stdin: %v", err)
		}
		if len(all) > client.MaxInput {
			return nil, &exit.RefusalError{Code: client.CodeInputTooLarge, Message: fmt.Sprintf("the result is larger than %d MiB", client.MaxInput>>20)}
		}
		text = string(all)
	}
	if text == report.WordResult {
		return nil, exit.Usagef("--result %s", report.Replace(text, `the result there, as JSON; a text goes in double quotes: '"done"'`))
	}
	raw, err := prompt.ReadJSON(text)
	if err != nil {
		return nil, exit.Usagef("--result: %v; a text goes in double quotes: --result '\"done\"'", err)
	}
	return raw, nil
}

// selection returns the choices; one empty id means that none was chosen.
func selection(choices []string) []string {
	if len(choices) == 1 && choices[0] == "" {
		return []string{}
	}
	return choices
}
