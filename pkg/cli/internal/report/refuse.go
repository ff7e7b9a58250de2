package report

import (
	"errors"
	"net/url"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// firstPart says what --url names.
const firstPart = "does the API begin at %s? --url names its first part, as the server printed it"

// suggestFirstPart asks whether the path of the server's URL is one too many: refusals that
// the API itself did not make may come of that.
func (p printer) suggestFirstPart() {
	if u, err := url.Parse(p.Server()); err == nil && strings.Trim(u.Path, "/") != "" {
		p.Suggest(firstPart, p.Server())
	}
}

// Refuse says that a command was refused: on stderr in words, and on stdout as
// a manifest when JSON was asked for. What is known of the session goes with it.
func Refuse(s *screen.Screen, where *place.Place, v View, err error) {
	p := printer{s, where}
	next := v.Outcome == session.OutcomeCompleted || v.Outcome == session.OutcomeCancelled
	m := Manifest{}
	if v.ID != "" {
		m = NewManifest(v)
	}
	m.Outcome = session.OutcomeError
	text := errorText(where, err)
	effects := exit.Effects(err)
	m.Error = &ManifestError{Code: exit.ErrorCode(err), Message: text, Effects: effects}
	id, answer := exit.About(err)
	if m.SessionID == "" {
		m.SessionID = id
	}
	var usage *exit.UsageError
	switch {
	case errors.As(err, &usage) && usage.Paste != "":
		m.ResumeHint = usage.Paste
	case effects != nil: // the command that acknowledges them
	case v.Pause != nil && !anyLate(Pending(v.Session), where):
		// Not the command that decides: nobody has been shown what it decides on.
		// Nor resume without an answer, which is refused as this one was.
		m.ResumeHint = p.Command(place.Target("show", m.SessionID)...)
	}
	if p.Form == screen.FormJSON {
		p.JSON(m)
	}
	switch {
	case usage != nil && usage.Paste != "":
		p.Complain("%s", text)
		p.Suggest("if that is what you mean: %s", usage.Paste)
		return
	case usage != nil: // our own words, and some name a command
		p.Suggest("%s", text)
	default:
		p.Complain("%s", text)
	}
	if effects != nil && m.ResumeHint != "" {
		p.Write(p.Stderr, Effects(*effects, p.Now(), screen.Width(p.Stderr)))
		p.Suggest("to go back all the same: %s", m.ResumeHint)
		return
	}
	if answer != nil {
		p.Suggest("the answer there is: %s", Said(*answer))
	}
	if usage != nil && usage.Command != "" {
		words := append(strings.Fields(usage.Command)[1:], "--help") // the first is the name it has in its help
		p.Suggest("see: %s", p.Called(words...))
	}
	switch code := exit.CodeOf(err); {
	case code == exit.CodeUnreachable:
		p.Suggest("is there a server at %s? One on this machine is started with: %s", p.Server(), p.ServeHint())
	case code == client.CodeUnauthenticated:
		p.Suggest("%s", p.TokenHint())
		p.suggestFirstPart()
	case code == client.CodeRouteNotFound:
		p.Suggest(firstPart, p.Server())
	case code == exit.CodeUnexpected:
		p.suggestFirstPart()
	case code == client.CodeSessionNotFound && !errors.Is(err, embedded.ErrNoData):
		p.Suggest("list the sessions there are: %s", p.Command("sessions"))
	case v.Pause == nil && (code == client.CodeWaitNotFound || code == client.CodeNothingToDecide):
		p.Suggest("see what waits: %s", p.Command("inbox"))
	case v.Pause != nil:
		p.Suggest("what it waits for: %s", p.Command(place.Target("show", m.SessionID)...))
	case v.Outcome == session.OutcomeFailed && code == client.CodeNotResumable:
		for _, line := range AfterFailure(where, v) {
			p.Suggest("%s", line)
		}
	case m.ResumeHint != "" && next:
		p.Suggest("to say the next thing: %s", m.ResumeHint)
	case m.ResumeHint != "" && code == client.CodeExpired:
		p.Suggest("its deadline has passed; go on with: %s", m.ResumeHint)
	case m.ResumeHint != "":
		p.Suggest("to go on: %s", m.ResumeHint)
	}
}
