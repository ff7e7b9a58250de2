package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// standing is a way in which a session stands.
type standing struct {
	// make makes the session.
	make func(s *stood)
	// allowed are the verbs that the session says to take.
	allowed []session.Verb
	// refused are the codes with which each of the others is refused; "nothing" is a stop that has
	// nothing to do.
	refused map[session.Verb]string
}

const (
	start, resume, goBack, submit = session.VerbStart, session.VerbResume, session.VerbGoBack, session.VerbSubmit
	retry, fork, send             = session.VerbRetry, session.VerbFork, session.VerbSend
	interrupt, cancel, abort      = session.VerbInterrupt, session.VerbCancel, session.VerbAbort
	remove                        = session.VerbDelete
)

// everyVerb has each verb with a request of the Go client that carries it out as well as it can be.
var everyVerb = map[session.Verb]func(*stood) error{
	start:     (*stood).start,
	resume:    (*stood).resume,
	goBack:    (*stood).goBack,
	submit:    (*stood).submit,
	retry:     func(s *stood) error { _, err := s.c.Retry(s.Context(), client.RetryParams{SessionID: "s"}); return err },
	fork:      func(s *stood) error { _, err := s.c.Fork(s.Context(), client.ForkParams{SessionID: "s"}); return err },
	send:      (*stood).say,
	interrupt: func(s *stood) error { return s.stop(s.c.Interrupt) },
	cancel:    func(s *stood) error { return s.stop(s.c.Cancel) },
	abort:     func(s *stood) error { return s.stop(s.c.Abort) },
	remove: func(s *stood) error {
		_, err := s.c.Delete(s.Context(), client.DeleteParams{SessionID: "s"})
		return err
	},
}

// TestAllowed: a session takes each verb that it says to take, and refuses each other one, wherever it
// stands: over HTTP, by the Go client.
func TestAllowed(t *testing.T) {
	t.Parallel()
	working := map[session.Verb]string{start: "already_running", resume: "already_running", goBack: "already_running", submit: "wait_not_found", retry: "already_running"}
	without := func(codes map[session.Verb]string, verbs ...session.Verb) map[session.Verb]string {
		left := map[session.Verb]string{}
		for verb, code := range codes {
			if !slices.Contains(verbs, verb) {
				left[verb] = code
			}
		}
		return left
	}
	idle := map[session.Verb]string{resume: "not_resumable", submit: "wait_not_found", retry: "not_resumable", interrupt: "session_ended", cancel: "nothing", abort: "nothing"}
	waits := map[session.Verb]string{start: "not_resumable", retry: "not_resumable", send: "still_waiting", resume: "still_waiting"}
	for name, c := range map[string]standing{
		"not begun": {
			make:    func(s *stood) { s.begin("desk", "echo") },
			allowed: []session.Verb{resume, fork, send, interrupt, cancel, abort, remove}, refused: without(working, resume),
		},
		"at work": {
			make:    func(s *stood) { s.begin("desk", "echo"); s.claim() },
			allowed: []session.Verb{fork, send, interrupt, cancel, abort, remove}, refused: working,
		},
		"a dead worker": {
			make:    func(s *stood) { s.begin("desk", "echo"); s.claim(); s.passed.Store(int64(time.Hour)) },
			allowed: []session.Verb{resume, fork, send, interrupt, cancel, abort, remove}, refused: without(working, resume),
		},
		"delayed": {
			make: func(s *stood) {
				s.begin("desk", "busy")
				_, err := s.Deliver(context.Background(), journal.NewWake(s.key, 2, journal.WakeStep))
				require.NoError(s, err)
				require.Equal(s, session.KindDelayed, s.newest("s").Kind)
			},
			allowed: []session.Verb{resume, fork, send, interrupt, cancel, abort, remove}, refused: without(working, resume),
		},
		"waits for an approval": {
			make:    func(s *stood) { s.works("desk", "deploy") },
			allowed: []session.Verb{resume, goBack, submit, fork, interrupt, cancel, abort, remove}, refused: without(waits, resume),
		},
		"waits for an answer to a question": {
			make:    func(s *stood) { s.works("desk", "pick") },
			allowed: []session.Verb{goBack, submit, fork, interrupt, cancel, abort, remove}, refused: waits,
		},
		"waits for a client tool": {
			make:    func(s *stood) { s.works("desk", "locate") },
			allowed: []session.Verb{goBack, submit, fork, interrupt, cancel, abort, remove}, refused: waits,
		},
		"waits for a verdict": {
			make:    func(s *stood) { s.works("desk", "pay") },
			allowed: []session.Verb{goBack, submit, fork, interrupt, cancel, abort, remove}, refused: waits,
		},
		"waits for a message": {
			make:    func(s *stood) { s.works("desk", "where") },
			allowed: []session.Verb{resume, goBack, submit, fork, send, interrupt, cancel, abort, remove}, refused: without(waits, resume, send),
		},
		"waits for several": {
			make:    func(s *stood) { s.works("desk", "both") },
			allowed: []session.Verb{resume, goBack, submit, fork, interrupt, cancel, abort, remove}, refused: without(waits, resume),
		},
		"gives up what waits for a message": {
			make:    func(s *stood) { s.works("yielding", "locate") },
			allowed: []session.Verb{resume, goBack, submit, fork, send, interrupt, cancel, abort, remove}, refused: without(waits, resume, send),
		},
		"an approval that a message must not undo": {
			make: func(s *stood) {
				s.works("yielding", "both")
				_, err := s.c.Submit(s.Context(), client.SubmitParams{SessionID: "s", Answer: client.SubmitRequest{WaitID: "w2-1", Kind: session.AnswerApproval, Approved: new(true)}})
				require.NoError(s, err)
				s.second = true
			},
			allowed: []session.Verb{goBack, submit, fork, interrupt, cancel, abort, remove}, refused: waits,
		},
		"answered, and not gone on": {
			make: func(s *stood) {
				s.works("desk", "locate")
				require.NoError(s, s.submit())
			},
			allowed: []session.Verb{resume, goBack, fork, send, interrupt, cancel, abort, remove},
			refused: map[session.Verb]string{start: "not_resumable", submit: "already_answered", retry: "not_resumable"},
		},
		"an answer that is only stored": {
			make: func(s *stood) {
				s.works("desk", "locate")
				s.hold = true
				require.NoError(s, s.submit())
			},
			allowed: []session.Verb{resume, goBack, fork, interrupt, cancel, abort, remove},
			refused: map[session.Verb]string{start: "not_resumable", submit: "already_answered", retry: "not_resumable", send: "still_waiting"},
		},
		"a deadline has passed": {
			make:    func(s *stood) { s.works("desk", "hurry"); s.passed.Store(int64(2 * time.Hour)) },
			allowed: []session.Verb{resume, goBack, fork, send, interrupt, cancel, abort, remove},
			refused: map[session.Verb]string{start: "not_resumable", submit: "expired", retry: "not_resumable"},
		},
		"interrupted": {
			make:    func(s *stood) { s.begin("desk", "echo"); s.stops(s.c.Interrupt) },
			allowed: []session.Verb{resume, goBack, fork, cancel, abort, remove},
			refused: map[session.Verb]string{start: "not_resumable", submit: "wait_not_found", retry: "not_resumable", send: "not_resumable", interrupt: "nothing"},
		},
		"interrupted while it waits": {
			make:    func(s *stood) { s.works("desk", "pick"); s.stops(s.c.Interrupt) },
			allowed: []session.Verb{resume, goBack, submit, fork, cancel, abort, remove},
			refused: map[session.Verb]string{start: "not_resumable", retry: "not_resumable", send: "not_resumable", interrupt: "nothing"},
		},
		"interrupted, and answered": {
			make: func(s *stood) {
				s.works("desk", "locate")
				s.stops(s.c.Interrupt)
				require.NoError(s, s.submit())
			},
			allowed: []session.Verb{resume, goBack, fork, cancel, abort, remove},
			refused: map[session.Verb]string{start: "not_resumable", submit: "already_answered", retry: "not_resumable", send: "not_resumable", interrupt: "nothing"},
		},
		"interrupted, and past a deadline": {
			make: func(s *stood) {
				s.works("desk", "hurry")
				s.stops(s.c.Interrupt)
				s.passed.Store(int64(2 * time.Hour))
			},
			allowed: []session.Verb{resume, goBack, fork, cancel, abort, remove},
			refused: map[session.Verb]string{start: "not_resumable", submit: "expired", retry: "not_resumable", send: "not_resumable", interrupt: "nothing"},
		},
		"completed": {
			make:    func(s *stood) { s.works("desk", "echo") },
			allowed: []session.Verb{start, goBack, fork, send, remove}, refused: idle,
		},
		"cancelled": {
			make:    func(s *stood) { s.begin("desk", "echo"); s.stops(s.c.Cancel) },
			allowed: []session.Verb{start, goBack, fork, send, remove}, refused: idle,
		},
		"cancelled while it waited": {
			make:    func(s *stood) { s.works("desk", "locate"); s.stops(s.c.Cancel) },
			allowed: []session.Verb{start, goBack, fork, send, remove},
			refused: map[session.Verb]string{resume: "not_resumable", submit: "session_ended", retry: "not_resumable", interrupt: "session_ended", cancel: "nothing", abort: "nothing"},
		},
		"failed": {
			make:    func(s *stood) { s.works("desk", "fail") },
			allowed: []session.Verb{goBack, retry, fork, remove},
			refused: map[session.Verb]string{start: "not_resumable", resume: "not_resumable", submit: "wait_not_found", send: "not_resumable", interrupt: "session_ended", cancel: "nothing", abort: "nothing"},
		},
		"aborted": {
			make:    func(s *stood) { s.works("desk", "deploy"); s.stops(s.c.Abort) },
			allowed: []session.Verb{goBack, fork, remove},
			refused: map[session.Verb]string{start: "not_resumable", resume: "not_resumable", submit: "session_ended", retry: "not_resumable", send: "not_resumable", interrupt: "session_ended", cancel: "nothing", abort: "nothing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Len(t, everyVerb, len(c.allowed)+len(c.refused), "each verb is allowed or refused")
			for verb, carryOut := range everyVerb {
				s := newStood(t)
				c.make(s)
				stands, err := s.c.Session(s.Context(), "s", 0)
				require.NoError(t, err)
				require.Equal(t, c.allowed, stands.Allowed)
				view, err := s.View(s.Context(), s.key)
				require.NoError(t, err)
				require.Equal(t, c.allowed, view.Allowed)
				require.Equal(t, c.refused[verb], codeOf(carryOut(s)), "%s", verb)
			}
		})
	}
}

// A session whose time is over is gone for every verb, and says nothing of what it takes.
func TestAllowed_gone(t *testing.T) {
	t.Parallel()
	s := newStood(t)
	s.works("brief", "echo")
	s.passed.Store(int64(2 * time.Hour))
	_, err := s.c.Session(s.Context(), "s", 0)
	require.Equal(t, "session_not_found", codeOf(err))
	for verb, carryOut := range everyVerb {
		want := "session_not_found"
		if verb == start {
			want = "not_resumable" // its id is never used again
		}
		require.Equal(t, want, codeOf(carryOut(s)), "%s", verb)
	}
}

// stood is a world with a session s of ann's, and a client.
type stood struct {
	*world
	c   *client.Client
	key session.Key
	// first is the checkpoint of its first entry. submit answers the second of its waits, and stores
	// answers only, if these are set; answers counts what it has answered.
	first        string
	second, hold bool
	answers      int
}

// busy is the script whose model is busy, besides.
type busy struct{ script }

func (b busy) Plan(ctx context.Context, v agent.View) (agent.Reply, error) {
	if v.Messages[0].Text() == "busy" {
		return agent.Reply{}, &llm.Error{Class: llm.ClassRateLimited, RetryAfter: time.Hour}
	}
	return b.script.Plan(ctx, v)
}

func newStood(t *testing.T) *stood {
	t.Helper()
	all := append([]tool.Tool{pay, name}, tools()...)
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{
		{Name: "desk", Planner: busy{}, Tools: all},
		{Name: "yielding", Planner: busy{}, Tools: all, Policy: session.Policy{AbandonOnMessage: true}},
		{Name: "brief", Planner: busy{}, Tools: all, Retention: time.Hour},
	}})
	require.NoError(t, err)
	w := newWorld(t, change{
		runtime: func(cfg *runtime.Config) { cfg.Registry = registry },
		api: func(cfg *httpapi.Config) {
			cfg.Authenticate = func(*http.Request) (httpapi.Caller, error) { return callers[ann], nil }
		},
	})
	return &stood{world: w, c: client.Over(w.handler), key: session.Key{Tenant: "acme", ID: "s"}}
}

// begin starts the session; nobody works on it.
func (s *stood) begin(agent, input string) {
	started, err := s.c.Start(s.Context(), client.StartParams{Request: client.StartRequest{SessionID: "s", Agent: agent, Input: client.Text(input)}})
	require.NoError(s, err)
	s.first = started.Entry.CheckpointID
}

// works starts the session, and works on it until it rests.
func (s *stood) works(agent, input string) {
	s.begin(agent, input)
	s.drive(s.key)
}

// claim has another worker work on it.
func (s *stood) claim() {
	_, err := s.store.Claim(s.Context(), store.ClaimParams{Key: s.key, Mode: store.ClaimTake, Owner: "somebody", Seq: 2, Now: s.now(), Until: s.now().Add(20 * time.Second)})
	require.NoError(s, err)
}

func (s *stood) start() error {
	_, err := s.c.Start(s.Context(), client.StartParams{Request: client.StartRequest{SessionID: "s", Agent: "desk", Input: client.Text("echo")}})
	return err
}

// resume brings nothing, then a message, then decisions: it returns why nothing was refused, if none is
// taken.
func (s *stood) resume() error {
	_, refused := s.c.Resume(s.Context(), client.ResumeParams{SessionID: "s"})
	for _, request := range []client.ResumeRequest{{Message: client.Text("echo")}, {Decisions: &client.Decisions{RejectAll: true}}} {
		if refused == nil {
			return nil
		}
		if out, err := s.c.Resume(s.Context(), client.ResumeParams{SessionID: "s", Request: request}); err == nil && !out.Repeated {
			return nil
		}
	}
	return refused
}

// goBack goes back to its first entry, with what it has done since before its eyes.
func (s *stood) goBack() error {
	request := client.ResumeRequest{FromCheckpoint: &client.FromCheckpoint{CheckpointID: s.first}}
	_, err := s.c.Resume(s.Context(), client.ResumeParams{SessionID: "s", Request: request})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Problem.Effects != nil {
		request.FromCheckpoint.Acknowledge = refused.Problem.Effects.Digest
		_, err = s.c.Resume(s.Context(), client.ResumeParams{SessionID: "s", Request: request})
	}
	return err
}

// submit answers a wait of it, each time in another way.
func (s *stood) submit() error {
	request := client.SubmitRequest{WaitID: "w2-1", Kind: session.AnswerClientTool}
	if waits, err := s.c.Waits(s.Context(), "s", client.Page{}); err == nil && len(waits.Items) > 0 {
		wait := waits.Items[0]
		if s.second {
			wait = waits.Items[1]
		}
		request.WaitID = wait.WaitID
		switch wait.Kind {
		case session.WaitApproval:
			request.Kind, request.Approved = session.AnswerApproval, new(false)
		case session.WaitQuestion:
			request.Kind, request.Selected = session.AnswerReply, []string{"red"}
		case session.WaitInput:
			request.Kind, request.Message = session.AnswerMessage, client.Text("echo")
		case session.WaitUnknown:
			request.Kind, request.Verdict = session.AnswerVerdict, session.VerdictHappened
		case session.WaitClientTool, session.WaitChild:
		}
	}
	if s.answers++; request.Kind == session.AnswerClientTool {
		request.Result = json.RawMessage(fmt.Sprint(s.answers))
	}
	if s.hold {
		request.AutoResume = new(false)
	}
	_, err := s.c.Submit(s.Context(), client.SubmitParams{SessionID: "s", Answer: request})
	return err
}

func (s *stood) say() error {
	_, err := s.c.Send(s.Context(), client.SendParams{SessionID: "s", Request: client.SendRequest{Message: client.Text("echo"), Start: true}})
	return err
}

var errNothing = errors.New("nothing")

// stop is refused with errNothing where there is nothing to stop.
func (s *stood) stop(verb func(context.Context, client.StopParams) (client.Stopped, error)) error {
	out, err := verb(s.Context(), client.StopParams{SessionID: "s"})
	if err == nil && out.Outcome == client.StopNothing {
		return errNothing
	}
	return err
}

func (s *stood) stops(verb func(context.Context, client.StopParams) (client.Stopped, error)) {
	require.NoError(s, s.stop(verb))
}

// codeOf is the code of a refusal; "" for none.
func codeOf(err error) string {
	var refused *client.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return refused.Problem.Code
	}
	return err.Error()
}
