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
)

const (
	// MaxForm is how large the body of a decision may be, in bytes: a reason of maxReason bytes has
	// three times as many in a form.
	MaxForm   = 4 << 10
	maxReason = 1 << 10
	mediaForm = "application/x-www-form-urlencoded"
)

// readForm reads a decision, strictly: what a form of ours does not send is refused, never guessed.
func readForm(r *http.Request) (grant.Decision, string, error) {
	given := r.Header.Values("Content-Type")
	media, params, err := mime.ParseMediaType(strings.Join(given, ", "))
	if err != nil || len(given) != 1 || media != mediaForm || len(params) > 1 || len(params) == 1 && !strings.EqualFold(params["charset"], "utf-8") {
		return "", "", errors.New("a decision is sent as a form (" + mediaForm + ")")
	}
	var raw []byte
	if r.Body != nil {
		raw, err = io.ReadAll(io.LimitReader(r.Body, MaxForm+1))
	}
	switch {
	case err != nil:
		return "", "", errors.New("the form ended before it was whole")
	case len(raw) > MaxForm:
		return "", "", errors.New("the form is too large: give a shorter reason")
	}
	return parseForm(string(raw))
}

func parseForm(text string) (grant.Decision, string, error) {
	values, err := url.ParseQuery(text)
	if err != nil || strings.Contains(text, ";") {
		return "", "", errors.New("the form cannot be read")
	}
	for name, all := range values {
		if name != "decision" && name != "reason" || len(all) != 1 || !utf8.ValidString(all[0]) {
			return "", "", errors.New("the form has a field that is none of its own, or one twice")
		}
	}
	decision := grant.Decision(values.Get("decision"))
	if !slices.Contains(grant.Decisions(), decision) {
		return "", "", errors.New("the form says neither approve nor deny")
	}
	reason := strings.TrimSpace(strings.ReplaceAll(values.Get("reason"), "\r\n", "\n")) // as browsers write lines
	if len(reason) > maxReason {
		return "", "", errors.New("the reason is too long")
	}
	return decision, reason, nil
}
