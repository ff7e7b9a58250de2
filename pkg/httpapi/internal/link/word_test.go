package link

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// oneWait is a runtime with one wait, which cannot be read where err is set; it takes every answer.
type oneWait struct {
	linked runtime.LinkedWait
	err    error
	taken  int
}

func (o *oneWait) LinkedWait(context.Context, session.Key, string, runtime.Caller) (runtime.LinkedWait, error) {
	return o.linked, o.err
}

func (o *oneWait) Submit(_ context.Context, p runtime.SubmitParams) (runtime.Submitted, error) {
	o.taken++
	return runtime.Submitted{Answer: p.Answer}, nil
}

// TestDecide_without_the_word: what has a high risk is not handed on without its word, also where the wait could
// not be read, or may be decided only by the time of the write.
func TestDecide_without_the_word(t *testing.T) {
	t.Parallel()
	no := &runtime.Error{Code: codes.NotAllowed, Message: "not by you"}
	for name, c := range map[string]struct {
		change func(*oneWait)
		word   string
		status int
		taken  int
	}{
		"asked for":       {func(*oneWait) {}, "", http.StatusBadRequest, 0},
		"typed":           {func(*oneWait) {}, "deploy", http.StatusOK, 1},
		"not read":        {func(o *oneWait) { o.linked, o.err = runtime.LinkedWait{}, errors.New("the store is away") }, "", http.StatusServiceUnavailable, 0},
		"not allowed yet": {func(o *oneWait) { o.linked.NotAllowed = no }, "", http.StatusForbidden, 0},
		"not by a link":   {func(o *oneWait) { o.linked.Undecidable = no }, "", http.StatusForbidden, 0},
		"over":            {func(o *oneWait) { o.linked.Over = true }, "", http.StatusOK, 1},
		"another nonce":   {func(o *oneWait) { o.linked.Record.Wait.Nonce = "other" }, "", http.StatusOK, 1},
		"no high risk":    {func(o *oneWait) { o.linked.Record.Wait.Preview = nil }, "", http.StatusOK, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := New(Config{Keys: "one:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("1", 32))), URL: "https://adjourn.example"})
			require.NoError(t, err)
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			w := session.Wait{ID: "w2-1", Kind: session.WaitApproval, Tool: "deploy", Nonce: "w2-1_n", Digest: journal.Digest([]byte("{}")), Arguments: []byte("{}"), Preview: &session.Preview{Risk: session.RiskHigh}}
			token, err := l.keys.Sign(grant.Grant{
				Tenant: "acme", Session: "s1", Wait: w.ID, Nonce: w.Nonce, Digest: w.Digest, Decisions: grant.Decisions(), Recipient: "ann", Expires: now.Add(time.Hour),
			})
			require.NoError(t, err)
			r := &oneWait{linked: runtime.LinkedWait{Record: journal.WaitRecord{Wait: w, State: session.WaitOpen}}}
			c.change(r)
			form := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a/"+token, strings.NewReader("decision=approve&word="+c.word))
			form.Header.Set("Content-Type", mediaForm)
			page := l.Decide(t.Context(), r, token, form, "link", now)
			require.Equal(t, c.status, page.Status, string(page.HTML))
			require.Equal(t, c.taken, r.taken)
			if c.status == http.StatusForbidden {
				require.Equal(t, codes.NotAllowed, page.Of.Refused, "it is recorded")
			}
		})
	}
}

// TestThen: whoever is asked reads what silence does, also where others are asked before.
func TestThen(t *testing.T) {
	t.Parallel()
	d := session.Deadline{Outcome: session.ExpireDefault, Value: []byte("true"), Escalate: &session.Escalation{Who: []string{"eve"}, After: time.Hour}}
	require.Equal(t, "others may decide too, for 1h0m0s more; after that it is approved", then(d))
	require.NotNil(t, d.Escalate)
}
