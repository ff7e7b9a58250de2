// Package interaction takes what the buttons of cards in Slack ask.
//
// Slack's signature takes the place of a caller's key: it says that Slack has sent a request, and the list of
// people says who clicked. Whoever is not on it decides nothing.
package interaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/notice/slack"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/refused"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// maxBody is how much of a request is read.
const maxBody = 256 << 10

// Config says what requests of Slack are taken with; SigningSecret and People are required.
type Config struct {
	// SigningSecret of the app in Slack.
	SigningSecret string
	// People says which subject each person in Slack is: a path of a file, or its JSON,
	// {"T024BE7LD/U2147483697": "ana"}.
	People string
	// Tenant whose people they are; nobody decides here for another one. Empty is [session.DefaultTenant].
	Tenant string
	// SignedIn says that whoever is on the list counts as signed in.
	SignedIn bool
}

// Slack takes requests of Slack. It is safe for concurrent use.
type Slack struct {
	cfg    Config
	people slack.People
}

// New reads the list of people.
func New(cfg Config) (*Slack, error) {
	if cfg.SigningSecret == "" || cfg.People == "" {
		return nil, errors.New("slack: SigningSecret and People are required: without them nobody is known")
	}
	cfg.Tenant = cmp.Or(cfg.Tenant, session.DefaultTenant)
	people, err := slack.ReadPeople(cfg.People)
	if err != nil {
		return nil, fmt.Errorf("people in slack: %w", err)
	}
	return &Slack{cfg: cfg, people: people}, nil
}

// Take carries out what a button asks, in the name of the person who clicked. What became of it the card says,
// which is edited after the decision, by whatever door it came. What is not taken, before anything is asked of a
// session, is a [refused.Error].
func (s *Slack) Take(ctx context.Context, to *runtime.Runtime, r *http.Request, now time.Time, log *slog.Logger) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return refused.New(codes.BodyUnreadable, "the request cannot be read")
	}
	if err := slack.Verify(s.cfg.SigningSecret, r.Header, body, now); err != nil {
		log.WarnContext(ctx, "slack", "error", err)
		return refused.New(codes.Unauthenticated, "only Slack is answered here, within five minutes of its signature")
	}
	d, asks, err := slack.ReadInteraction(body, s.people)
	switch {
	case errors.Is(err, slack.ErrStranger):
		log.WarnContext(ctx, "slack", "error", err)
		return refused.New(codes.Forbidden, "nobody here is known as that person in Slack")
	case err != nil:
		return refused.New(codes.BodyUnreadable, "the request says nothing that a card asks")
	case !asks:
		return nil
	case d.Key.Tenant != s.cfg.Tenant:
		log.WarnContext(ctx, "slack", "tenant", d.Key.Tenant, "who", d.Who, "error", "its people are those of another tenant")
		return refused.New(codes.Forbidden, "nobody in Slack decides for that tenant")
	}
	_, err = to.Submit(ctx, runtime.SubmitParams{
		Key: d.Key, Caller: runtime.Caller{Who: d.Who, From: "slack", NotSignedIn: !s.cfg.SignedIn},
		Answer: session.Answer{Kind: session.AnswerApproval, Wait: d.Wait, ApprovalID: d.Nonce, Approved: &d.Approved},
	})
	if err != nil {
		log.WarnContext(ctx, "slack", "session", d.Key.ID, "tenant", d.Key.Tenant, "wait", d.Wait, "who", d.Who, "error", err)
	}
	return err
}
