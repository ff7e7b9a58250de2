package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// steps is more than Lambda lets a chain go round that it takes for a loop.
const steps = 25

// story is told to out, chapter by chapter, and ends at the first thing that is
// not as it should be.
type story struct {
	out    io.Writer
	token  string
	caller *client.Client
	// other is a caller of another tenant, nil if there is none.
	other *client.Client
	// below is nil where nobody may look beneath the API.
	below *beneath
	rest  time.Duration
	// quiet is how long a session that is to go on may stand still until that is said,
	// still until the story ends there.
	quiet, still time.Duration
	now          func() time.Time
}

func (s *story) tell(ctx context.Context) error {
	s.say("Adjourn at %s", s.caller.URL())
	for i, chapter := range []struct {
		title string
		tell  func(context.Context) error
	}{
		{"A stranger is refused", s.stranger},
		{fmt.Sprintf("A session of %d steps", steps), s.longSession},
		{"A result too large for the table", s.largeResult},
		{"A session that waits for an approval", s.approval},
		{"A session that waits for a message", s.message},
		{"An event starts a session", s.event},
		{"The sweep", s.sweep},
	} {
		s.say("\n%d. %s", i+1, chapter.title)
		if err := chapter.tell(ctx); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
			}
			return fmt.Errorf("%s: %w", strings.ToLower(chapter.title[:1])+chapter.title[1:], err)
		}
	}
	s.say("\nAll of it was as it should be.")
	return nil
}

func (s *story) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

// --- Chapter 1

func (s *story) stranger(ctx context.Context) error {
	for what, token := range map[string]string{"without a token": "", "with a forged token": forge(s.token)} {
		caller, err := client.New(client.Config{URL: s.caller.URL(), Token: token})
		if err != nil {
			return err
		}
		if _, err := caller.Sessions(ctx, client.SessionsParams{}); statusOf(err) != http.StatusUnauthorized {
			return fmt.Errorf("GET /sessions %s was not refused with 401: is the API open? (%w)", what, orNone(err))
		}
		s.say("   %-21s GET /sessions is 401", what)
	}
	started, err := s.start(ctx, "[{say: mine}]")
	if status := statusOf(err); status == http.StatusUnauthorized || status == http.StatusForbidden {
		return fmt.Errorf("strangers are, but so is your own token (TOKEN, or ADJOURN_TOKEN): is it of the issuer and audience this was deployed with, not expired, and has it the tenant's claim? %w", err)
	}
	if err != nil {
		return err
	}
	if s.other == nil {
		s.say("   (with ADJOURN_OTHER_TOKEN, of another tenant, it would also be seen that tenants are apart)")
		return nil
	}
	if _, err = s.other.Session(ctx, started.SessionID, 0); statusOf(err) != http.StatusNotFound {
		return fmt.Errorf("another tenant asked for session %s and got no 404: %w", started.SessionID, orNone(err))
	}
	s.say("   %-21s GET /sessions/{id} is 404: for it there is no such session", "from another tenant")
	return nil
}

// forge returns a token that claims more than was signed.
func forge(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "x" + token
	}
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"mallory","tenant":"root"}`))
	return strings.Join(parts, ".")
}

// --- Chapters 2, 3

func (s *story) longSession(ctx context.Context) error {
	before, err := s.hops(ctx)
	if err != nil {
		return err
	}
	began := s.now()
	ended, err := s.play(ctx, fmt.Sprintf("[{repeat: %d, call: echo, with: {text: hop}}, {say: done}]", steps-1), session.OutcomeCompleted)
	if err != nil {
		return err
	}
	if ended.Step != steps || ended.Text != "done" {
		return fmt.Errorf("session %s ended after %d steps with %q", ended.ID, ended.Step, ended.Text)
	}
	s.say("   %s completed: %d steps in %s", ended.ID, ended.Step, s.now().Sub(began).Round(10*time.Millisecond))
	var last int64
	for entry, err := range s.caller.Journal(ctx, ended.ID, 0) {
		if err != nil {
			return err
		}
		if entry.Seq != last+1 {
			return fmt.Errorf("entry %d of session %s follows entry %d", entry.Seq, ended.ID, last)
		}
		last = entry.Seq
	}
	s.say("   its journal has %d entries, none missing, none twice", last)
	after, err := s.hops(ctx)
	if err != nil || s.below == nil {
		return err
	}
	if s.below.parameters["StepsPerInvocation"] == "1" && after-before < steps {
		return fmt.Errorf("its %d steps were done in %d invocations; one each was due", steps, after-before)
	}
	s.say("   the step function was invoked %d times", after-before)
	return nil
}

// hops counts the invocations of the step function so far, where it may look beneath the API.
func (s *story) hops(ctx context.Context) (int, error) {
	if s.below == nil {
		return 0, nil
	}
	counts, err := s.below.settled(ctx, "Step")
	return append(counts, 0)[0], err
}

// largeResult is of a tool that answers with more than an item can hold.
func (s *story) largeResult(ctx context.Context) error {
	const size = 1_000_000
	ended, err := s.play(ctx, fmt.Sprintf("[{call: echo, with: {size: %d}}, {say: done}]", size), session.OutcomeCompleted)
	if err != nil {
		return err
	}
	for message, err := range s.caller.AllMessages(ctx, ended.ID) {
		if err != nil {
			return err
		}
		for _, part := range message.Parts {
			if part.ToolResult != nil && len(part.ToolResult.Output) >= size {
				s.say("   %s completed: its tool answered with %d bytes, and they came back", ended.ID, size)
				return nil
			}
		}
	}
	return fmt.Errorf("the messages of session %s hold no result of %d bytes", ended.ID, size)
}

// --- Chapter 4

func (s *story) approval(ctx context.Context) error {
	paused, err := s.play(ctx, "[{call: deploy, with: {service: web}}, {say: deployed}]", session.OutcomePaused)
	if err != nil {
		return err
	}
	if paused.Pause == nil || len(paused.Pause.Pending) != 1 || paused.Pause.Pending[0].Kind != session.WaitApproval {
		return fmt.Errorf("session %s paused, but not for one approval", paused.ID)
	}
	wait := paused.Pause.Pending[0]
	s.say("   %s paused: may %s run with %s?", paused.ID, wait.Tool, wait.Arguments)
	if err := s.nothingRuns(ctx, paused); err != nil {
		return err
	}
	yes := true
	answer := client.SubmitRequest{WaitID: wait.WaitID, Kind: session.AnswerApproval, ToolCallID: wait.CallID, ApprovalID: "forged", Approved: &yes}
	_, err = s.caller.Submit(ctx, client.SubmitParams{SessionID: paused.ID, Answer: answer})
	if code := statusOf(err); code < 400 || code >= 500 {
		return fmt.Errorf("a forged approval was not refused: %w", orNone(err))
	}
	s.say("   a forged approval is %d", statusOf(err))
	answer.ApprovalID = wait.ApprovalID
	submitted, err := s.caller.Submit(ctx, client.SubmitParams{SessionID: paused.ID, Answer: answer})
	if err != nil {
		return err
	}
	s.say("   approved by %s", submitted.Answer.Who)
	return s.completes(ctx, paused.ID)
}

// --- Chapter 5

func (s *story) message(ctx context.Context) error {
	paused, err := s.play(ctx, `[{need: "which region?"}, {say: there}]`, session.OutcomePaused)
	if err != nil {
		return err
	}
	s.say("   %s paused and asks: %s", paused.ID, paused.Text)
	_, err = s.caller.Resume(ctx, client.ResumeParams{SessionID: paused.ID, Request: client.ResumeRequest{
		Mode: client.ResumeWithMessage, CheckpointID: paused.CheckpointID, Message: client.Text("eu-west-1"),
	}})
	if err != nil {
		return err
	}
	s.say("   resumed with %q", "eu-west-1")
	return s.completes(ctx, paused.ID)
}

// --- Chapter 7

// sweep asks for a sweep out of turn: one that fails leaves deadlines and lost
// wakes lying, and shows in no session for a while.
func (s *story) sweep(ctx context.Context) error {
	if s.below == nil {
		s.say("   (with -stack and AWS credentials it would be asked for one)")
		return nil
	}
	var swept json.RawMessage
	err := s.below.invoke(ctx, "Sweep", map[string]any{"detail-type": "Scheduled Event", "source": "aws.events", "detail": map[string]any{}}, &swept)
	s.say("   it answered %s", swept)
	return err
}

// --- What chapters share

func (s *story) start(ctx context.Context, script string) (client.Started, error) {
	return s.caller.Start(ctx, client.StartParams{Request: client.StartRequest{Agent: "lab", Input: client.Text(script)}})
}

// play starts a session and waits for it to rest.
func (s *story) play(ctx context.Context, script string, want session.Outcome) (client.Session, error) {
	started, err := s.start(ctx, script)
	if err != nil {
		return client.Session{}, err
	}
	return s.rested(ctx, started.SessionID, want)
}

func (s *story) completes(ctx context.Context, id string) error {
	ended, err := s.rested(ctx, id, session.OutcomeCompleted)
	if err == nil {
		s.say("   %s completed: %s", id, ended.Text)
	}
	return err
}

// statusOf returns the status of a refusal, 0 if err is none.
func statusOf(err error) int {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// orNone stands for no error at all where one was wanted.
func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}
