package link

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/session"
)

const (
	// MaxForm is how large the body of a decision may be, in bytes: a reason of maxReason bytes has
	// three times as many in a form.
	MaxForm   = 4 << 10
	maxReason = 1 << 10
	mediaForm = "application/x-www-form-urlencoded"
)

// form is what the page of a link sends.
type form struct {
	decision grant.Decision
	reason   string
	// word that was typed to approve what has a high risk.
	word string
}

// wordFor is the word that has to be typed before a wait is approved: the tool's name where the risk is
// high, so that no button alone approves that. Empty for none.
func wordFor(w session.Wait) string {
	if w.Preview != nil && w.Preview.Risk == session.RiskHigh {
		return w.Tool
	}
	return ""
}

// readForm reads a decision, strictly: what a form of ours does not send is refused, never guessed.
func readForm(r *http.Request) (form, error) {
	given := r.Header.Values("Content-Type")
	media, params, err := mime.ParseMediaType(strings.Join(given, ", "))
	if err != nil || len(given) != 1 || media != mediaForm || len(params) > 1 || len(params) == 1 && !strings.EqualFold(params["charset"], "utf-8") {
		return form{}, errors.New("a decision is sent as a form (" + mediaForm + ")")
	}
	var raw []byte
	if r.Body != nil {
		raw, err = io.ReadAll(io.LimitReader(r.Body, MaxForm+1))
	}
	switch {
	case err != nil:
		return form{}, errors.New("the form ended before it was whole")
	case len(raw) > MaxForm:
		return form{}, errors.New("the form is too large: give a shorter reason")
	}
	return parseForm(string(raw))
}

func parseForm(text string) (form, error) {
	values, err := url.ParseQuery(text)
	if err != nil || strings.Contains(text, ";") {
		return form{}, errors.New("the form cannot be read")
	}
	for name, all := range values {
		if !slices.Contains([]string{"decision", "reason", "word"}, name) || len(all) != 1 || !utf8.ValidString(all[0]) {
			return form{}, errors.New("the form has a field that is none of its own, or one twice")
		}
	}
	decision := grant.Decision(values.Get("decision"))
	if !slices.Contains(grant.Decisions(), decision) {
		return form{}, errors.New("the form says neither approve nor deny")
	}
	reason := strings.TrimSpace(strings.ReplaceAll(values.Get("reason"), "\r\n", "\n")) // as browsers write lines
	if len(reason) > maxReason {
		return form{}, errors.New("the reason is too long")
	}
	return form{decision: decision, reason: reason, word: strings.TrimSpace(values.Get("word"))}, nil
}
