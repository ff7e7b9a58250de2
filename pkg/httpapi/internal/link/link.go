// Package link makes links to approvals, shows what each one is for, and takes the decision of whoever holds it.
package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

const (
	// Lasts is how long a link lasts where nobody says otherwise and the wait has no deadline before.
	Lasts = 7 * 24 * time.Hour
	// LastsAtMost is how long one may last.
	LastsAtMost = 30 * 24 * time.Hour
	// LastsAtLeast is how long one has to last to be of use.
	LastsAtLeast = time.Second
)

// Config says what links are made with.
type Config struct {
	// Keys sign and verify, as ADJOURN_GRANT_KEYS holds them: id:base64, several with commas between.
	// The first signs; a key that is taken away ends every link it signed.
	Keys string
	// URL is where people reach the API, without a slash at its end.
	URL string
	// SignInURL is where somebody signs in whose decision needs more than a link; empty for none.
	SignInURL string
}

// Links make and serve links. They are safe for concurrent use.
type Links struct {
	keys   grant.Keys
	url    string
	signIn string
	// render is a field so that a program which makes no links does not contain html/template.
	render func(view) ([]byte, error)
}

// New returns links. Keys and URL are required.
func New(cfg Config) (*Links, error) {
	keys, err := grant.ParseKeys(cfg.Keys)
	if err == nil && keys.IsZero() {
		err = grant.ErrKeys
	}
	if err == nil {
		err = grant.CheckURL(cfg.URL)
	}
	if err == nil && cfg.SignInURL != "" {
		err = grant.CheckURL(cfg.SignInURL)
	}
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	return &Links{keys: keys, url: strings.TrimRight(cfg.URL, "/"), signIn: cfg.SignInURL, render: render}, nil
}

// Runtime is what links stand on.
type Runtime interface {
	LinkedWait(ctx context.Context, key session.Key, wait string, by runtime.Caller) (runtime.LinkedWait, error)
	Submit(ctx context.Context, p runtime.SubmitParams) (runtime.Submitted, error)
}

// Params ask for a link.
type Params struct {
	Key  session.Key
	Wait string
	// Recipient is whose decision it will be. It is the caller, except where the program itself sends
	// a notice to somebody.
	Recipient string
	// OneUser and Unverified are those of the caller. A link does not say them, and they may keep its
	// recipient from answering.
	OneUser, Unverified bool
	// Roles that the recipient has. A link does not prove them: it shows what a role may decide.
	Roles []string
	// Decisions that the link allows; empty means all.
	Decisions []string
	// Lasts is how long the link lasts; 0 means [Lasts], or until the deadline of the wait.
	Lasts time.Duration
	Now   time.Time
}

// Made is a link.
type Made struct {
	URL       string
	ExpiresAt time.Time
	// Decides says that the link takes a decision; one that does not shows what waits.
	Decides bool
}

// Make returns a link for one person to one open approval.
func (l *Links) Make(ctx context.Context, r Runtime, p Params) (Made, error) {
	decisions, err := decisionsOf(p.Decisions)
	if err != nil {
		return Made{}, refuse(codes.InvalidInput, p.Key, "%v", err)
	}
	if p.Lasts != 0 && (p.Lasts < LastsAtLeast || p.Lasts > LastsAtMost) {
		return Made{}, refuse(codes.InvalidInput, p.Key, "a link lasts from %v to %v", LastsAtLeast, LastsAtMost)
	}
	linked, err := r.LinkedWait(ctx, p.Key, p.Wait, runtime.Caller{Who: p.Recipient, OneUser: p.OneUser, Unverified: p.Unverified, Roles: p.Roles})
	if err != nil {
		return Made{}, err
	}
	w := linked.Record.Wait
	switch {
	case linked.NotAllowed != nil:
		return Made{}, linked.NotAllowed
	case w.Kind != session.WaitApproval:
		return Made{}, linked.Undecidable
	case linked.Over:
		return Made{}, refuse(codes.SessionEnded, p.Key, "%s waits for nobody any more", w.ID)
	}
	expires := p.Now.Add(Lasts)
	if p.Lasts != 0 {
		expires = p.Now.Add(p.Lasts)
	} else if d := w.Deadline; d != nil && d.Escalate == nil && d.At.Before(expires) {
		expires = d.At
	}
	expires = expires.Add(time.Second - 1).Truncate(time.Second).UTC() // tokens know whole seconds
	text, err := l.keys.Sign(grant.Grant{
		Tenant: p.Key.Tenant, Session: p.Key.ID, Wait: w.ID, Nonce: w.Nonce, Digest: w.Digest,
		Decisions: decisions, Recipient: p.Recipient, Expires: expires,
	})
	if err != nil {
		return Made{}, refuse(codes.InvalidInput, p.Key, "%v", err)
	}
	return Made{URL: l.url + "/a/" + text, ExpiresAt: expires, Decides: linked.Undecidable == nil}, nil
}

func decisionsOf(words []string) ([]grant.Decision, error) {
	if words == nil {
		return grant.Decisions(), nil
	}
	var out []grant.Decision
	for _, word := range words {
		d := grant.Decision(word)
		if !slices.Contains(grant.Decisions(), d) || slices.Contains(out, d) {
			return nil, fmt.Errorf("decisions are %s and %s, each once, not %.40q", grant.Approve, grant.Deny, word)
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return nil, errors.New("decisions is empty: leave it out for all, or name one")
	}
	return out, nil
}

func refuse(code codes.Code, key session.Key, format string, args ...any) *runtime.Error {
	return &runtime.Error{Code: code, Session: key.ID, Message: fmt.Sprintf(format, args...)}
}

// Page is an answer in HTML.
type Page struct {
	Status int
	HTML   []byte
	// Err is what went wrong on our side, for the log.
	Err error
	// Of is the wait that the page is about, with whom its link was made for; nil where it is about none.
	Of *Of
}

// Of is what a page has to record.
type Of struct {
	Key session.Key
	Who string
	// Read is what the page shows of an open wait; nil where it shows none.
	Read *journal.WaitRecord
	// Refused is why a decision on Wait was refused before the runtime was asked; empty where it was not.
	Refused codes.Code
	Wait    string
}

// of returns what is recorded of a grant.
func of(g grant.Grant) *Of {
	return &Of{Key: session.Key{Tenant: g.Tenant, ID: g.Session}, Who: g.Recipient, Wait: g.Wait}
}

// refused is a page that refuses a decision.
func refused(p Page, g grant.Grant, code codes.Code) Page {
	p.Of = of(g)
	p.Of.Refused = code
	return p
}

// Show is the page of a link. It decides nothing, however often and by whatever it is asked for.
func (l *Links) Show(ctx context.Context, r Runtime, token string, now time.Time) Page {
	g, err := l.keys.Read(token, now)
	if errors.Is(err, grant.ErrInvalid) {
		return l.page(http.StatusNotFound, notValid)
	}
	expired := err != nil
	linked, page := l.linked(ctx, r, g)
	switch {
	case page != nil:
		return *page
	case linked.Over:
		return l.page(http.StatusOK, ended(g, linked.Record))
	case expired:
		return l.page(http.StatusGone, view{Title: "This link has expired", Notice: "Nothing was decided by it, and the approval may still be open. Ask for a new link."})
	}
	out := l.page(http.StatusOK, l.asking(g, linked, now))
	out.Of = of(g)
	out.Of.Read = &linked.Record
	return out
}

var notValid = view{Title: "This link is not valid", Notice: "It is incomplete, was made for something that is not there any more, or its key was taken away. Nothing was decided."}

// linked reads the wait of a grant. A page says why there is nothing to show.
func (l *Links) linked(ctx context.Context, r Runtime, g grant.Grant) (runtime.LinkedWait, *Page) {
	linked, err := r.LinkedWait(ctx, session.Key{Tenant: g.Tenant, ID: g.Session}, g.Wait, runtime.Caller{Who: g.Recipient, ByLink: true})
	var out Page
	switch w := linked.Record.Wait; {
	case err != nil:
		out = l.failed(err)
	case w.Nonce != g.Nonce || w.Digest != g.Digest:
		out = l.page(http.StatusNotFound, notValid)
	case linked.NotAllowed != nil:
		out = l.page(http.StatusForbidden, view{Title: "This is not yours to decide", Notice: "Whom this link was made for may not answer it."})
	default:
		return linked, nil
	}
	return linked, &out
}

// failed is the page for what a verb was refused with.
func (l *Links) failed(err error) Page {
	e := runtime.AsError(err)
	switch e.Code.Class() {
	case codes.ClassNotFound:
		return l.page(http.StatusNotFound, notValid)
	case codes.ClassUnavailable, codes.ClassInternal:
		p := l.page(http.StatusServiceUnavailable, view{Title: "Not now", Notice: "Something went wrong on the server's side. Try again in a moment; a decision that was taken counts once."})
		p.Err = err
		return p
	case codes.ClassGone:
		return l.page(http.StatusGone, view{Title: "Too late", Notice: e.Message})
	case codes.ClassConflict:
		return l.page(http.StatusConflict, view{Title: "Decided before", Notice: e.Message})
	case codes.ClassForbidden:
		return l.page(http.StatusForbidden, view{Title: "Not by this link", Notice: e.Message})
	case codes.ClassInvalid:
	}
	return l.page(http.StatusBadRequest, view{Title: "Not understood", Notice: e.Message})
}

// Decide takes what the page of a link sent: a form of at most [MaxForm] bytes. Nothing of it is
// looked at before the token is known to be ours. From is where the request came from.
func (l *Links) Decide(ctx context.Context, r Runtime, token string, request *http.Request, from string, now time.Time) Page {
	g, err := l.keys.Read(token, now)
	if errors.Is(err, grant.ErrInvalid) {
		return l.page(http.StatusNotFound, notValid)
	}
	if err != nil {
		return refused(l.Show(ctx, r, token, now), g, codes.Expired)
	}
	form, err := readForm(request)
	if err != nil {
		return refused(l.page(http.StatusBadRequest, view{Title: "Not understood", Notice: "Nothing was decided: " + err.Error() + "."}), g, codes.InvalidAnswer)
	}
	approves := form.decision == grant.Approve
	if !slices.Contains(g.Decisions, form.decision) {
		return refused(l.page(http.StatusForbidden, view{Title: "Not by this link", Notice: "This link does not allow that decision. Nothing was decided."}), g, codes.NotAllowed)
	}
	if approves {
		if page := l.withoutWord(ctx, r, g, form, now); page != nil {
			return *page
		}
	}
	// Who may answer, and whether a link is enough, the runtime checks with the write.
	submitted, err := r.Submit(ctx, runtime.SubmitParams{
		Key:    session.Key{Tenant: g.Tenant, ID: g.Session},
		Caller: runtime.Caller{Who: g.Recipient, From: from, ByLink: true},
		Answer: session.Answer{
			Wait: g.Wait, Kind: session.AnswerApproval, ApprovalID: g.Nonce, Digest: g.Digest,
			Approved: new(approves), Reason: form.reason,
		},
	})
	if err != nil {
		return l.refusedDecision(ctx, r, g, err)
	}
	return l.page(http.StatusOK, decided(g, submitted.Answer))
}

// withoutWord is the page again where the word that a wait asks for was not typed; nil where it was, or where
// there is none. Where it cannot be read whether there is one, nothing is decided. What is not open any more, or
// is not what the link was made for, is refused with the write.
func (l *Links) withoutWord(ctx context.Context, r Runtime, g grant.Grant, f form, now time.Time) *Page {
	linked, page := l.linked(ctx, r, g)
	if page != nil && linked.NotAllowed == nil {
		if page.Err != nil {
			return page
		}
		return nil // there is no such wait, and a nonce does not come back
	}
	word := wordFor(linked.Record.Wait)
	var out Page
	switch no := cmp.Or(linked.NotAllowed, linked.Undecidable); {
	case linked.Over || word == "" || f.word == word:
		return nil
	case no != nil: // it may be allowed by the time of the write
		out = refused(l.failed(no), g, runtime.AsError(no).Code)
	default:
		v := l.asking(g, linked, now)
		v.Notice = "Nothing was decided. The risk is high: to approve, type the word " + word + " into its field, and press Approve."
		out = refused(l.page(http.StatusBadRequest, v), g, codes.InvalidAnswer)
	}
	return &out
}

// refusedDecision says why a decision did not count, and of one that came second what was decided.
func (l *Links) refusedDecision(ctx context.Context, r Runtime, g grant.Grant, err error) Page {
	failed := l.failed(err)
	if failed.Status != http.StatusConflict && failed.Status != http.StatusGone {
		return failed
	}
	linked, page := l.linked(ctx, r, g)
	if page != nil {
		return failed
	}
	v := ended(g, linked.Record)
	v.Notice = "Your decision came too late and did not count."
	return l.page(failed.Status, v)
}
