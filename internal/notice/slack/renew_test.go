package slack_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/notice/slack"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// act does something to the first wait without deciding it.
func (w *world) act(act session.WaitAct) {
	w.Helper()
	for item, err := range w.store.Items(w.Context(), key, store.KindWait, "w1-1") {
		require.NoError(w, err)
		act.At = w.now
		item.Wait.Acts = append(item.Wait.Acts, act)
		if act.Deadline != nil {
			item.Wait.Wait.Deadline = &session.Deadline{At: *act.Deadline, Outcome: session.ExpireDeny}
		}
		_, err = w.store.Update(w.Context(), key, item)
		require.NoError(w, err)
	}
}

// What is done to a wait edits its card, which keeps its buttons; a delegation is said below it, once.
func TestSend_acts(t *testing.T) {
	t.Parallel()
	s := newWorkspace(t)
	w := newWorld(t, s, true)
	w.act(session.WaitAct{Kind: session.ActDelegated, Who: "ana", To: "be\u202en"})
	early := w.send("aw1-1-1")
	require.Equal(t, journal.NoticePending, early.State)
	require.Contains(t, early.Error, "not posted yet")
	w.send("e0000000001")
	require.Len(t, s.asked, 2)
	s.answer = func(n int, _ http.ResponseWriter) bool { return n == 4 } // an empty answer
	w.now = w.now.Add(10 * time.Second)
	require.Equal(t, journal.NoticePending, w.send("aw1-1-1").State)
	w.now = w.now.Add(10 * time.Minute)
	require.Equal(t, journal.NoticeSent, w.send("aw1-1-1").State)
	require.Equal(t, []string{"Bearer xoxb-1 /api/chat.update", "Bearer xoxb-1 /api/chat.postMessage", "Bearer xoxb-1 /api/chat.update", "Bearer xoxb-1 /api/chat.postMessage"}, s.asked[2:])
	card, below := text(t, s.bodies[4]), s.bodies[5]
	require.Contains(t, card, `"ts":"1.1"`)
	require.Contains(t, card, `Delegated to be\\u202en by ana`)
	require.Contains(t, card, `"action_id":"reject"`)
	require.Equal(t, "1.1", below["thread_ts"])
	require.Equal(t, true, below["reply_broadcast"])
	require.Contains(t, below["text"], " by ana: desk: approval of refund")

	w.act(session.WaitAct{Kind: session.ActExtended, Who: "ana", Deadline: new(w.now.Add(2 * time.Hour))})
	require.Equal(t, journal.NoticeSent, w.send("aw1-1-2").State)
	require.Len(t, s.asked, 7, "nobody has to do anything sooner")
	require.Contains(t, text(t, s.bodies[6]), "Until 2026-11-26 11:10 UTC")
}

// A card that is decided while it is edited for something else says that it is decided.
func TestSend_acts_and_a_decision(t *testing.T) {
	t.Parallel()
	s := newWorkspace(t)
	w := newWorld(t, s, true)
	w.send("e0000000001")
	w.act(session.WaitAct{Kind: session.ActExtended, Who: "ana", Deadline: new(w.now.Add(2 * time.Hour))})
	s.answer = func(n int, _ http.ResponseWriter) bool {
		if n == 3 {
			w.approve()
		}
		return false
	}
	require.Equal(t, journal.NoticeSent, w.send("aw1-1-1").State)
	require.Len(t, s.asked, 4)
	require.Contains(t, text(t, s.bodies[2]), "button")
	last := text(t, s.bodies[3])
	require.Contains(t, last, "Approved by ana")
	require.NotContains(t, last, "button")

	s = newWorkspace(t)
	w = newWorld(t, s, true)
	w.send("e0000000001")
	w.act(session.WaitAct{Kind: session.ActDelegated, Who: "ana", To: "ben"})
	w.approve()
	require.Equal(t, journal.NoticeSent, w.send("aw1-1-1").State)
	require.Len(t, s.asked, 2, "it is not open any more: its decision edits the card")
}

// TestSend_signed_in: no button decides what only they may who have signed in, unless Slack counts as that.
func TestSend_signed_in(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule   *session.AnswerRule
		counts bool
		button bool
	}{
		"no rule":                {nil, false, true},
		"signed in":              {&session.AnswerRule{Assurance: session.AssuranceSignedIn}, false, false},
		"an unknown assurance":   {&session.AnswerRule{Assurance: "passkey"}, false, false},
		"two":                    {&session.AnswerRule{Need: 2}, false, false},
		"signed in by Slack":     {&session.AnswerRule{Assurance: session.AssuranceSignedIn}, true, true},
		"two people in Slack":    {&session.AnswerRule{Need: 2}, true, true},
		"a link would be enough": {&session.AnswerRule{Assurance: session.AssuranceLink, NotRequester: true}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWorkspace(t)
			w := newWorld(t, s, true, func(cfg *slack.Config, w *session.Wait) {
				cfg.Arguments, cfg.SignedIn = true, c.counts
				w.Rule, w.Arguments = c.rule, json.RawMessage(`{}`)
			})
			w.send("e0000000001")
			for _, action := range []string{`"action_id":"approve"`, `"action_id":"reject"`} {
				if c.button {
					require.Contains(t, text(t, s.bodies[0]), action)
				} else {
					require.NotContains(t, text(t, s.bodies[0]), action)
				}
			}
			require.Contains(t, text(t, s.bodies[0]), `"action_id":"open"`)
		})
	}
}
