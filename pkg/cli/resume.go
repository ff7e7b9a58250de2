package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/answers"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// resumeFlags are the flags of resume.
type resumeFlags struct {
	checkpoint string
	approve    []string
	reject     []string
	approveAll bool
	rejectAll  bool
	edit       []string
	reason     string
	from       string
	seen       string
	key        work.Key
	rules      work.Rules
	wait       work.Stay
}

func (c *cli) resumeCommand() *cobra.Command {
	var f resumeFlags
	cmd := &cobra.Command{
		Use:   "resume {session | -c checkpoint} [message]",
		Short: "Decide what a paused session waits for, and let it go on",
		Long: `Take a session on, in one of four ways:

  with decisions   --approve, --reject, --approve-all, --reject-all, --edit.
                   Each approval is named by its wait (w2-1), whose id stands
                   beside it wherever it is shown (wait_id in JSON). Approvals
                   you do not name are rejected; questions and other waits stay
                   open.
  with a message   when the agent asked for input.
  --from-checkpoint ENTRY
                   back to the checkpoint of that entry, as show and checkpoints
                   number them, or with this id; with a message or without.
                   Nothing is deleted. What the session has done since is shown,
                   and you are asked; what was open there is asked anew.
  with neither     go on after Ctrl-C or a crash, or when a deadline has
                   passed. On a terminal you are asked for what is open.

With -c the session must still be at that checkpoint, so that you decide over
what you were shown; if it has moved on, the exit code is 5. It takes the number
of an entry, as show numbers them, or the checkpoint's id. The same decision
given again changes nothing: it prints where the session stands now.

--approve-all needs -c, for it does not say itself what you were shown. Without,
you are shown what waits now and asked on a terminal; elsewhere the command with
its -c is printed, to be pasted.`,
		Example: `  adjourn resume SESSION --approve w2-1
  adjourn resume SESSION --from-checkpoint 3 "leave the originals alone"
  adjourn resume -c CHECKPOINT --reject w2-2 --reason "the original"
  adjourn resume SESSION --edit 'w2-1={"order": "A-17", "amount": 50}'
  adjourn resume SESSION "use the eu-west-1 region"`,
		Args:              atMost(2, "quote the message if it has several words"),
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.resume(ctx, f, args)
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.checkpoint, "checkpoint", "c", "", "`checkpoint` the session must be at: its id, which names the session too, or the number of its entry")
	flags.StringArrayVar(&f.approve, "approve", nil, "approve this `wait`; may be given several times")
	flags.StringArrayVar(&f.reject, "reject", nil, "reject this `wait`; may be given several times")
	decisionVar(flags, &f.approveAll, "approve-all", "approve every approval of the checkpoint but those in --reject")
	decisionVar(flags, &f.rejectAll, "reject-all", "reject every open approval")
	flags.StringArrayVar(&f.edit, "edit", nil, "approve with other arguments, as `wait=JSON`")
	flags.StringVar(&f.reason, "reason", "", "`text` the agent is told with a rejection")
	flags.StringVar(&f.from, "from-checkpoint", "", "go back to this `entry`, or checkpoint")
	flags.StringVar(&f.seen, flagAcknowledge, "", aboutAcknowledge)
	f.key.Register(flags)
	f.rules.Register(flags)
	f.wait.Register(flags)
	for _, flag := range []string{"approve", "reject", "edit"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, c.completeApprovals)
	}
	return cmd
}

// waitID is the form of the id of a wait, or of several in a list.
var waitID = regexp.MustCompile(`^w[0-9]+-[0-9]+(,w[0-9]+-[0-9]+)*,?$`)

func (f *resumeFlags) decides() bool {
	return len(f.approve) > 0 || len(f.reject) > 0 || f.approveAll || f.rejectAll || len(f.edit) > 0
}

func (c *cli) resume(ctx context.Context, f resumeFlags, args []string) error {
	if err := f.wait.Bound(c.Place); err != nil {
		return err
	}
	id, message, hasMessage, err := c.whose(&f, args)
	if err != nil {
		return err
	}
	decisions, err := f.decisions()
	if err != nil {
		return err
	}
	switch {
	case hasMessage && f.decides() && waitID.MatchString(message):
		return exit.Usagef("%q looks like a wait: each wait has its own flag, as in --approve w3-1 --approve w3-2", message)
	case hasMessage && f.decides() && len(args) == 1: // beside -c, which names the session
		return exit.Usagef("the checkpoint belongs to session %s, so that %q would be a message, and decisions and a message cannot go together", id, message)
	case hasMessage && f.decides():
		return exit.Usagef("decisions and a message cannot go together: decide first, then send the message if the agent asks for one")
	case hasMessage && checkMessage(message) != nil:
		return checkMessage(message)
	case f.reason != "" && !f.decides():
		return exit.Usagef("--reason belongs to a decision: add --reject or another one")
	case f.seen != "" && f.from == "":
		return exit.Usagef("--acknowledge belongs to --from-checkpoint")
	case f.key.Text != "" && f.from == "":
		return exit.Usagef("--idempotency-key belongs to --from-checkpoint: to repeat anything else is harmless with -c")
	case f.from != "" && (f.decides() || f.checkpoint != ""):
		return exit.Usagef("--from-checkpoint goes back: it takes a message, and neither decisions nor -c")
	}
	rules, err := f.rules.Asked()
	if err != nil {
		return err
	}
	if f.decides() && !rules.IsZero() {
		return exit.Usagef("decisions and what the task is held to cannot go together: interrupt the session, and resume it with --limit, --allow-tool and the like")
	}
	e, err := c.Open(ctx, true)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	c.message = message
	if f.checkpoint != "" {
		if f.checkpoint, err = c.lists.CheckpointOf(ctx, e, id, f.checkpoint); err != nil {
			return c.refused(ctx, e, id, err)
		}
	}
	if f.from != "" {
		return c.resumeFrom(ctx, e, id, message, f, rules, args)
	}
	var resumed client.Resumed
	switch {
	case f.decides():
		resumed, err = c.decide(ctx, e, id, f.checkpoint, &decisions)
	case hasMessage:
		resumed, err = e.Resume(ctx, client.ResumeParams{SessionID: id, Request: client.ResumeRequest{CheckpointID: f.checkpoint, Message: client.Text(message), Rules: rules}})
	default:
		resumed, err = c.goOn(ctx, e, id, f.checkpoint, rules)
	}
	if errors.Is(err, errNothingDecided) {
		return c.leave(ctx, e, id)
	}
	if err != nil && hasMessage {
		err = c.saidBefore(ctx, e, id, message, err)
	}
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	switch {
	case f.decides():
		c.did = "the decision is stored"
		if !resumed.Repeated {
			answers.TellVotes(c.Talk, resumed)
		}
	case hasMessage:
		c.did = "the message is stored"
	}
	if resumed.Repeated {
		c.Talk("Already settled: it was decided before, and nothing was done again.")
	}
	return c.drive(ctx, e, id, &f.wait)
}

// resumeFrom goes back to a checkpoint.
func (c *cli) resumeFrom(ctx context.Context, e *place.Connection, id, message string, f resumeFlags, rules session.TaskRules, args []string) error {
	checkpoint, err := c.lists.CheckpointOf(ctx, e, id, f.from)
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	request := client.ResumeRequest{FromCheckpoint: &client.FromCheckpoint{CheckpointID: checkpoint}, Rules: rules}
	if message != "" {
		request.Message = client.Text(message)
	}
	return c.goBack(ctx, e, id, args, slices.Concat([]string{"--from-checkpoint", f.from}, f.key.Words(), f.rules.Words()), f.seen, &f.wait, func(acknowledge string) (client.Resumed, error) {
		request.FromCheckpoint.Acknowledge = acknowledge
		return e.Resume(ctx, client.ResumeParams{SessionID: id, Request: request, IdempotencyKey: f.key.Text})
	})
}

// decide takes decisions, once they are held to what the session waits for.
func (c *cli) decide(ctx context.Context, e answers.Sessions, id, checkpoint string, p *client.Decisions) (client.Resumed, error) {
	waits, err := answers.WaitsOf(ctx, e, id)
	if err != nil {
		return client.Resumed{}, err
	}
	if err := waits.Decidable(ctx, *p); err != nil {
		return client.Resumed{}, err
	}
	if p.ApproveAll && checkpoint == "" {
		return c.approveAll(ctx, e, waits, p)
	}
	resumed, err := decided(ctx, e, id, checkpoint, p)
	if err == nil && !resumed.Repeated {
		c.sayUnnamed(waits, p)
	}
	return resumed, err
}

// decided sends decisions.
func decided(ctx context.Context, e answers.Sessions, id, checkpoint string, p *client.Decisions) (client.Resumed, error) {
	return e.Resume(ctx, client.ResumeParams{SessionID: id, Request: client.ResumeRequest{CheckpointID: checkpoint, Decisions: p}})
}

// goOn continues a session without bringing anything. What still waits for a
// person is left to the questions on a terminal.
func (c *cli) goOn(ctx context.Context, e *place.Connection, id, checkpoint string, rules session.TaskRules) (client.Resumed, error) {
	before, err := e.Session(ctx, id, 0)
	if err != nil {
		return client.Resumed{}, err
	}
	resumed, err := e.Resume(ctx, client.ResumeParams{SessionID: id, Request: client.ResumeRequest{CheckpointID: checkpoint, Rules: rules}})
	if err == nil || exit.CodeOf(err) == client.CodeStillWaiting {
		for _, w := range report.Pending(before) {
			if report.Late(w, c.Now()) {
				c.Talk("%s (%s): %s.", w.WaitID, report.Headline(w), report.Passed(w))
			}
		}
	}
	if err == nil {
		return resumed, nil
	}
	switch code := exit.CodeOf(err); {
	case code == client.CodeStillWaiting && c.person.There():
		return client.Resumed{Continuation: client.ContinuationWaiting}, nil
	case code == client.CodeAlreadyRunning:
		// Another worker is no rival: this stays with the session, as that one does.
		c.Talk("Another worker is at session %s: waiting for it.", id)
		return client.Resumed{Continuation: client.ContinuationResumed}, nil
	}
	return resumed, err
}

// saidBefore says what became of a message that is refused because it was taken in
// before: pasted again it changes nothing, and prints where the session stands.
func (c *cli) saidBefore(ctx context.Context, e *place.Connection, id string, message string, refused error) error {
	gone := []client.Code{client.CodeNotResumable, client.CodeSessionEnded, client.CodeAlreadyRunning}
	if !slices.Contains(gone, exit.CodeOf(refused)) {
		return refused
	}
	entries, err := e.Entries(ctx, id)
	if err != nil {
		return refused
	}
	for _, entry := range slices.Backward(entries) {
		for _, m := range entry.Messages {
			if m.Role != llm.RoleUser {
				continue
			}
			if entry.Kind != session.KindResumed || m.Text() != message {
				return refused // the last that was said is another one, or began the task
			}
			c.Talk("This message was taken in before, at %s (entry %d).", entry.At.Local().Format("2006-01-02 15:04:05"), entry.Seq)
			return nil
		}
	}
	return refused
}

// noSession says of a missing data file what it means for the session asked for.
func (c *cli) noSession(err error, id string) error {
	if !errors.Is(err, embedded.ErrNoData) {
		return err
	}
	return &exit.RefusalError{Code: client.CodeSessionNotFound, Session: id, Cause: err, Message: fmt.Sprintf(
		"not found: there is no data file %s; if the session lives elsewhere, say where with --data", c.DataPath())}
}

// whose reads which session is meant, and the message if there is one.
func (c *cli) whose(f *resumeFlags, args []string) (id, message string, hasMessage bool, err error) {
	_, notEntry := strconv.ParseInt(f.checkpoint, 10, 64)
	if f.checkpoint == "" || notEntry == nil { // an entry is one of the session that is named
		if len(args) > 0 && args[0] == "" {
			return "", "", false, exit.Usagef("the session is empty")
		}
		switch len(args) {
		case 0:
			if notEntry == nil {
				return "", "", false, exit.Usagef("-c %s is the number of an entry: name the session too", f.checkpoint)
			}
			return "", "", false, exit.Usagef("which session? give its id, or a checkpoint with -c (see: %s)", c.Command("sessions"))
		case 1:
			return args[0], "", false, nil
		}
		return args[0], args[1], true, nil
	}
	checkpoint, err := session.ParseCheckpoint(f.checkpoint)
	if err != nil {
		return "", "", false, &exit.RefusalError{Code: client.CodeInvalidCheckpoint, Cause: err, Message: fmt.Sprintf(
			"-c %q is neither the number of an entry nor a checkpoint id; copy it whole from checkpoint_id or resume_hint", f.checkpoint)}
	}
	switch {
	case len(args) == 1 && args[0] == checkpoint.Session && !f.decides():
		return "", "", false, exit.Usagef("%q is the session's own id, which -c names already. If it is your message, name both: resume -c … %s %s", args[0], place.Quote(args[0]), place.Quote(args[0]))
	case len(args) == 0, len(args) == 1 && args[0] == checkpoint.Session:
		return checkpoint.Session, "", false, nil
	case len(args) == 1:
		return checkpoint.Session, args[0], true, nil
	case args[0] != checkpoint.Session:
		return "", "", false, exit.Usagef("the checkpoint belongs to session %s, not to %s", checkpoint.Session, args[0])
	}
	return checkpoint.Session, args[1], true, nil
}

// decisions reads the decision flags; a mistake in them is found before anything happens.
func (f *resumeFlags) decisions() (client.Decisions, error) {
	p := client.Decisions{Approve: slices.Clone(f.approve), Reject: f.reject, ApproveAll: f.approveAll, RejectAll: f.rejectAll, Reason: f.reason}
	if f.approveAll && f.rejectAll {
		return p, exit.Usagef("--approve-all and --reject-all contradict each other")
	}
	if f.rejectAll && len(f.approve) > 0 {
		return p, exit.Usagef("--reject-all and --approve contradict each other; name with --approve the waits to approve; the others are rejected")
	}
	if f.rejectAll && len(f.edit) > 0 {
		return p, exit.Usagef("--reject-all and --edit contradict each other: --edit approves; the waits you do not name are rejected")
	}
	for _, edit := range f.edit {
		wait, text, found := strings.Cut(edit, "=")
		if !found || wait == "" {
			return p, exit.Usagef("--edit %q: write it as WAIT=JSON, for example --edit 'w2-1={\"amount\": 50}'", edit)
		}
		raw, err := prompt.ReadJSON(text)
		if err != nil {
			return p, exit.Usagef("--edit %s: %v", wait, err)
		}
		if p.EditedInput == nil {
			p.EditedInput = map[string]json.RawMessage{}
		}
		if _, twice := p.EditedInput[wait]; twice {
			return p, exit.Usagef("--edit %s was given twice", wait)
		}
		p.EditedInput[wait] = raw
		if !slices.Contains(p.Approve, wait) && !f.approveAll {
			p.Approve = append(p.Approve, wait)
		}
	}
	for _, wait := range slices.Concat(p.Approve, p.Reject) {
		if wait == "" {
			return p, exit.Usagef("--approve and --reject need the id of a wait")
		}
		if strings.ContainsAny(wait, ", ") {
			return p, exit.Usagef("%q names several waits: each wait has its own flag, as in --approve w3-1 --approve w3-2", wait)
		}
	}
	for _, wait := range p.Reject {
		if _, edited := p.EditedInput[wait]; edited || slices.Contains(p.Approve, wait) {
			return p, exit.Usagef("%s is both approved and rejected", wait)
		}
	}
	return p, nil
}
