package list

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// AuditCommand is the command audit, of one session: which words are one, how it is completed, and what is
// said where there is none, is the command line's.
func (l *Lists) AuditCommand(one cobra.PositionalArgs, complete cobra.CompletionFunc, none func(error, string) error) *cobra.Command {
	var verify bool
	cmd := &cobra.Command{
		Use:   "audit session",
		Short: "Show who was asked, who read it, who answered",
		Long: `Show what is recorded of everything a session waited for: what was asked, who
read it, who was refused, who answered and from where, and which entry took the
answer in; then the calls that a policy denied or let run, and those that a
standing permission let run.

--verify compares all records of the session with each other: the chain of its
entries, the chains of the lines, what was asked with what is stored of it, the
answers with those that were taken in, results with their ledgers. A record that
is not as it was written is named, and the exit code is 1.`,
		Example: `  adjourn audit SESSION
  adjourn audit SESSION --verify
  adjourn audit SESSION --output jsonl > audit.jsonl`,
		Args:              one,
		ValidArgsFunction: complete,
		RunE: l.do(func(ctx context.Context, args []string) error {
			return none(l.audit(ctx, args[0], verify), args[0])
		}),
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "compare all records of the session with each other")
	return cmd
}

func (l *Lists) audit(ctx context.Context, id string, verify bool) error {
	e, err := l.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	found, err := allAudit(ctx, e, id, verify)
	if err != nil {
		return err
	}
	switch l.Form {
	case screen.FormJSON:
		l.JSON(struct {
			Audit []session.AuditLine `json:"audit"`
			Check *session.AuditCheck `json:"check,omitempty"`
		}{found.Items, found.Check})
	case screen.FormJSONLines:
		err = l.auditLines(found)
	default:
		l.sayAudit(id, found)
	}
	if err == nil && found.Check != nil && !found.Check.Whole {
		err = exit.Said(exit.Failed)
	}
	return err
}

// allAudit is every page of an audit, with the check that came with the first.
func allAudit(ctx context.Context, e *place.Connection, id string, verify bool) (client.Audit, error) {
	p := client.AuditParams{Verify: verify}
	all, err := e.Audit(ctx, id, p)
	if err == nil && verify && all.Check == nil {
		err = fmt.Errorf("%w: it was asked to verify, and says nothing of it", client.ErrNotAdjourn)
	}
	for cursor := all.Cursor; err == nil && cursor != ""; {
		var page client.Audit
		page, err = e.Audit(ctx, id, client.AuditParams{Page: client.Page{Cursor: cursor}})
		if err == nil && page.Cursor == cursor {
			err = fmt.Errorf("%w: the page after %.80q would be asked for again and again", client.ErrNotAdjourn, cursor)
		}
		all.Items, cursor = append(all.Items, page.Items...), page.Cursor
	}
	all.Cursor = ""
	return all, err
}

// auditLines prints one JSON object a line; the last one is the check, if there was one.
func (l *Lists) auditLines(found client.Audit) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for i := range found.Items {
		if err := encoder.Encode(&found.Items[i]); err != nil {
			return err
		}
	}
	if found.Check != nil {
		if err := encoder.Encode(struct {
			Check *session.AuditCheck `json:"check"`
		}{found.Check}); err != nil {
			return err
		}
	}
	l.Write(l.Stdout, out.String())
	return l.Unwritten()
}

func (l *Lists) sayAudit(id string, found client.Audit) {
	if len(found.Items) == 0 {
		l.Say("Session %s has waited for nothing.", screen.CleanLine(id))
	} else {
		table := [][]string{{"AT", "WAIT", "WHAT", "WHO", "FROM", "ENTRY", "MORE"}}
		for i := range found.Items {
			table = append(table, auditRow(&found.Items[i]))
		}
		l.Table(table)
	}
	if found.Check == nil {
		return
	}
	c := found.Check
	l.Say("")
	for _, f := range c.Unproven {
		l.Say("not proven: %s: %s", screen.CleanLine(f.Record), screen.CleanLine(f.Fault))
	}
	for _, f := range c.Faults {
		l.Say("FAULT: %s: %s", screen.CleanLine(f.Record), screen.CleanLine(f.Fault))
	}
	what := fmt.Sprintf("%s, %s, %s", entries(int64(c.Entries)), screen.Count(int64(c.Waits), "wait"), screen.Count(int64(c.Lines), "recorded line"))
	if !c.Whole {
		l.Say("Compared: %s. Its records are not as they were written.", what)
		return
	}
	l.Say("Compared: %s. Nothing contradicts anything.", what)
}

func auditRow(line *session.AuditLine) []string {
	row := []string{line.At.Local().Format(time.DateTime), line.Wait, string(line.Kind), line.Who, line.From, "", more(line)}
	if line.Entry > 0 {
		row[5] = fmt.Sprint(line.Entry)
	}
	for i := range row {
		row[i] = screen.CleanLine(row[i])
	}
	return row
}

// inPlaceOf says of what somebody said that it was for another person, if it was.
func inPlaceOf(what, who string) string {
	if who == "" {
		return what
	}
	return what + " (for " + who + ")"
}

// more is what else a line says to a person.
func more(line *session.AuditLine) string {
	switch line.Kind {
	case session.AuditAsked, session.AuditDenied, session.AuditAllowed, session.AuditCovered:
		return strings.TrimSpace(line.Tool + " " + line.Call)
	case session.AuditAnswered, session.AuditExpired:
		var a session.Answer
		_ = json.Unmarshal(line.Data, &a) // of a line of another form it is empty
		return inPlaceOf(report.Said(a), a.For)
	case session.AuditVoted:
		var v session.Vote
		_ = json.Unmarshal(line.Data, &v) // likewise
		return inPlaceOf(report.Said(session.Answer{Kind: session.AnswerApproval, Approved: &v.Approved, Reason: v.Reason}), v.For)
	case session.AuditExtended, session.AuditDelegated, session.AuditEscalated:
		var act session.WaitAct
		_ = json.Unmarshal(line.Data, &act) // likewise
		what := "to " + act.To
		switch {
		case act.Kind == session.ActEscalated:
			what = "to " + report.Whom(act.Escalation)
		case act.Deadline != nil:
			what = "until " + act.Deadline.Local().Format(time.DateTime)
		}
		if act.Reason != "" {
			what += ": " + act.Reason
		}
		return what
	case session.AuditRefused:
		var refused struct {
			Code string `json:"code"`
		}
		_ = json.Unmarshal(line.Data, &refused) // likewise
		return refused.Code
	case session.AuditUnrecorded:
		var count struct {
			AtLeast int64 `json:"atLeast"`
		}
		_ = json.Unmarshal(line.Data, &count) // likewise
		return fmt.Sprintf("at least %d", count.AtLeast)
	case session.AuditStoodIn:
		var act session.WaitAct
		_ = json.Unmarshal(line.Data, &act) // likewise
		return "for " + act.For
	case session.AuditRevoked:
		var revoked session.Revocation
		_ = json.Unmarshal(line.Data, &revoked) // likewise
		return revoked.Reason
	case session.AuditViewed, session.AuditReminded, session.AuditFull, session.AuditTaken, session.AuditClosed:
	}
	return ""
}
