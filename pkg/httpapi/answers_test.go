package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestDocs_answers: each body of the table in docs/http.md is taken by a session that
// waits for it.
func TestDocs_answers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/http.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Answers\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")

	w := newWorld(t)
	starts := map[string]string{ // what leads to the wait of a row
		"`approval`":                 `"desk","input":"deploy"`,
		"`question` with choices":    `"desk","input":"pick"`,
		"`question` without choices": `"other","input":"name"`,
		"`client_tool`":              `"desk","input":"locate"`,
		"`input`":                    `"desk","input":"where"`,
		"`unknown`":                  `"other","input":"pay"`,
	}
	given := map[session.AnswerKind]int{}
	row, n := "", 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || !strings.Contains(line, "{") {
			continue
		}
		row = cmp.Or(strings.Trim(cells[0], "| "), row)
		body := strings.Trim(cells[1], "` |\n")
		require.Contains(t, starts, row)
		n++
		key := session.Key{Tenant: "acme", ID: fmt.Sprintf("s%d", n)}
		started := fmt.Sprintf(`{"sessionId":%q,"agent":%s}`, key.ID, starts[row])
		require.Equal(t, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions", started).Code)
		w.drive(key)
		pending := get[client.Session](w, ann, "/sessions/"+key.ID).Pause.Pending
		require.Len(t, pending, 1, body)
		kind, _, _ := strings.Cut(strings.TrimPrefix(row, "`"), "`")
		require.Equal(t, kind, string(pending[0].Kind))
		taken := answer[client.Submitted](w, http.StatusOK, w.send(ann, http.MethodPost, "/sessions/"+key.ID+"/submit", body))
		var asked client.SubmitRequest
		require.NoError(t, json.Unmarshal([]byte(body), &asked))
		require.Equal(t, pending[0].WaitID, asked.WaitID)
		require.Equal(t, client.ContinuationResumed, taken.Continuation)
		given[asked.Kind]++
	}
	require.Equal(t, map[session.AnswerKind]int{
		session.AnswerApproval: 2, session.AnswerReply: 2, session.AnswerClientTool: 2, session.AnswerMessage: 1, session.AnswerVerdict: 2,
	}, given)
}

// A reply in the field of the other kind of question is refused with the field to use.
func TestSubmit_reply_in_the_wrong_field(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("colour", "pick")
	refused := problem(t, w.send(ann, http.MethodPost, "/sessions/colour/submit", `{"kind":"reply","waitId":"w3-1","text":"red"}`))
	require.Contains(t, refused.Detail, "the question takes selected, an array of ids: red, blue")
	require.EqualValues(t, codes.InvalidAnswer, refused.Code)
	require.Equal(t, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions", `{"sessionId":"who","agent":"other","input":"name"}`).Code)
	w.drive(session.Key{Tenant: "acme", ID: "who"})
	refused = problem(t, w.send(ann, http.MethodPost, "/sessions/who/submit", `{"kind":"reply","waitId":"w3-1","selected":["Ann"]}`))
	require.Contains(t, refused.Detail, "the question takes text, a string")
}
