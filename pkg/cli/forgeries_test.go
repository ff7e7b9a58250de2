package cli_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// forgery is one way in which an answer is not the one that is asked for.
type forgery struct {
	name string
	// script of the session; deploy unless it is said.
	script string
	// forge changes what is claimed, and does to the session what makes it wrong.
	forge func(w *forgeryWorld, c *claim)
	// right changes the good claim to what counts afterwards; over says that nothing does.
	right func(w *forgeryWorld, c *claim)
	over  bool
	// person is who may answer, where ada may not.
	person string
	// asked says that the wait is asked anew rather than as it was: of a program that has changed.
	asked bool
	// moves says that the refusal itself changes the wait: its deadline has passed.
	moves bool
}

func forgeries() []forgery {
	approve := func(w *forgeryWorld, c claim, yes bool) {
		w.Helper()
		_, err := w.programs[0].Runtime.Submit(w.Context(), runtime.SubmitParams{
			Key: keyOf(c.session), Caller: runtime.Caller{Who: "bob", From: "test"}, Answer: session.Answer{Wait: c.wait, Kind: session.AnswerApproval, Approved: &yes},
		})
		require.NoError(w, err)
		w.drive(0, c.session)
	}
	says := func(said string) func(*forgeryWorld, *claim) {
		return func(_ *forgeryWorld, c *claim) { c.said = said }
	}
	return []forgery{
		{name: "wrong session", forge: func(w *forgeryWorld, c *claim) {
			c.session = w.start("clerk", c.session+"-other", "deploy").session
		}},
		{name: "wrong wait", script: "deploy deploy", forge: func(w *forgeryWorld, c *claim) {
			approve(w, *c, false) // it asks again, and the wait of before is claimed, with the nonce of now where it has one
			if !c.byNonce {
				c.nonce = w.good(c.session).nonce
			}
		}, right: func(w *forgeryWorld, c *claim) { *c = w.good(c.session) }},
		{name: "wrong nonce", forge: func(w *forgeryWorld, c *claim) {
			c.nonce = w.start("clerk", c.session+"-other", "deploy").nonce
		}},
		{name: "wrong digest", forge: func(w *forgeryWorld, c *claim) {
			c.digest = journal.Digest([]byte(`{"service":"other"}`))
			w.shows(*c, `{"service":"other"}`)
		}, right: func(w *forgeryWorld, c *claim) { w.shows(*c, `{}`) }},
		{name: "wrong version", asked: true, forge: func(_ *forgeryWorld, c *claim) { c.version = 1 }, right: func(w *forgeryWorld, c *claim) {
			*c = w.good(c.session)
			c.version = 1
		}},
		{name: "wrong approver", script: "board", person: "bob", forge: func(*forgeryWorld, *claim) {}},
		{name: "the requester", script: "others", person: "bob", forge: func(*forgeryWorld, *claim) {}},
		{name: "second use", over: true, forge: func(w *forgeryWorld, c *claim) { approve(w, *c, false) }},
		{name: "expired", script: "hurry", over: true, moves: true, forge: func(w *forgeryWorld, _ *claim) { w.ahead.Add(int64(2 * time.Hour)) }},
		{name: "after restore", forge: func(w *forgeryWorld, c *claim) {
			s, err := w.programs[0].Runtime.Session(w.Context(), keyOf(c.session))
			require.NoError(w, err)
			_, err = w.programs[0].Runtime.GoBack(w.Context(), runtime.BackParams{Key: keyOf(c.session), Checkpoint: s.Checkpoint().String(), Caller: runtime.Caller{Who: "ada"}})
			require.NoError(w, err)
			w.drive(0, c.session)
		}, right: func(w *forgeryWorld, c *claim) { *c = w.good(c.session) }},
		{name: "after fork", forge: func(w *forgeryWorld, c *claim) {
			forked, err := w.programs[0].Runtime.Fork(w.Context(), runtime.ForkParams{Origin: keyOf(c.session), ID: c.session + "-fork", Caller: runtime.Caller{Who: "ada"}})
			require.NoError(w, err)
			c.session = forked.Key.ID
			w.drive(0, c.session)
		}},
		{name: "after delete", over: true, forge: func(w *forgeryWorld, c *claim) {
			_, err := w.programs[0].Runtime.Delete(w.Context(), runtime.DeleteParams{Key: keyOf(c.session), Caller: runtime.Caller{Who: "ada"}})
			require.NoError(w, err)
		}},
		{name: "missing", forge: says("")},
		{name: "null", forge: says("null")},
		{name: `"false"`, forge: says(`"false"`)},
		{name: "0", forge: says(`0`)},
		{name: "two spellings", forge: says(`false,"Approved":true`)},
		{name: "unknown id", forge: func(_ *forgeryWorld, c *claim) {
			c.wait, c.nonce = "w9-9", "w9-9_"+strings.TrimPrefix(c.nonce, c.wait+"_")
		}},
		{name: "truncated nonce", forge: func(_ *forgeryWorld, c *claim) { c.nonce = c.nonce[:len(c.nonce)-1] }},
		{name: "truncated token", forge: func(_ *forgeryWorld, c *claim) { c.cut = true }},
		{name: "other key id", forge: func(_ *forgeryWorld, c *claim) { c.foreign = true }},
	}
}

// shows has the record of a wait show other arguments than were asked, as who can write the store might.
func (w *forgeryWorld) shows(c claim, arguments string) {
	w.Helper()
	for item, err := range w.store.Items(w.Context(), keyOf(c.session), store.KindWait, c.wait) {
		require.NoError(w, err)
		record := *item.Wait
		record.Wait.Arguments = []byte(arguments)
		_, err = w.store.Update(w.Context(), keyOf(c.session), store.WaitItem(record, item.Rev))
		require.NoError(w, err)
	}
}

// What keeps a refusal from being recorded with a wait.
const (
	noWait    = "; unrecorded: there is no such wait to record it with"
	noSession = "; unrecorded: there is no session any more"
	nobody    = "; unrecorded: nobody knows who it was, so that anybody could fill the audit"
	unsent    = "; unrecorded: the command sends nothing"
	unnamed   = "; unrecorded: it names no wait"
)

// with is a row of the table with other cells: forgeries and what becomes of them, by turns.
func with(row map[string]string, cells ...string) map[string]string {
	out := maps.Clone(row)
	for pair := range slices.Chunk(cells, 2) {
		out[pair[0]] = pair[1]
	}
	return out
}

// forgeryTable says what becomes of each forgery at each door: what comes back, and why it is not recorded where
// it is not; or why there is no such forgery there.
func forgeryTable() map[string]map[string]string {
	const (
		byID   = "none: it names a wait by its id, and no nonce"
		goType = "none: its type has no such value"
		noJSON = "none: what is said there is no JSON"
		page   = "; unrecorded: it is no link of ours"
	)
	api := map[string]string{
		"wrong session": "400 invalid_answer", "wrong wait": "400 invalid_answer", "wrong nonce": "400 invalid_answer", "truncated nonce": "400 invalid_answer",
		"wrong digest": "409 approval_mismatch", "wrong version": "200", "wrong approver": "403 not_allowed", "the requester": "403 requester_may_not_answer",
		"second use": "409 already_answered", "expired": "410 expired", "after restore": "409 session_ended",
		"after fork": "404 wait_not_found" + noWait, "after delete": "404 session_not_found" + noSession, "unknown id": "404 wait_not_found" + noWait,
		"missing": "400 invalid_answer", "null": "400 invalid_answer", `"false"`: "400 invalid_field", "0": "400 invalid_field", "two spellings": "400 unknown_field",
		"truncated token": "401 unauthenticated" + nobody, "other key id": "401 unauthenticated" + nobody,
	}
	named := with(api, "wrong session", byID, "wrong nonce", byID, "truncated nonce", byID, "wrong wait", "409 already_answered")
	form := with(api, "wrong session", "404 wait_not_found", "wrong wait", "409 already_answered", "wrong nonce", "404 wait_not_found", "truncated nonce", "404 wait_not_found",
		"missing", "400 invalid_field", "null", "400 invalid_field", "two spellings", "400 invalid_field")
	command := map[string]string{
		"wrong session": byID, "wrong nonce": byID, "truncated nonce": byID, "wrong wait": "5 already_answered", "wrong digest": "2 invalid_answer" + unsent,
		"wrong version": "0", "wrong approver": "4 not_allowed", "the requester": "4 requester_may_not_answer", "second use": "5 already_answered", "expired": "5 expired",
		"after restore": "5 session_ended", "after fork": "3 wait_not_found" + noWait, "after delete": "3 session_not_found" + noSession, "unknown id": "3 wait_not_found" + noWait,
		"missing": "2 usage" + unsent, "null": "2 usage" + unsent, `"false"`: "2 usage" + unsent, "0": "2 usage" + unsent, "two spellings": noJSON,
		"truncated token": "4 unauthenticated" + nobody, "other key id": "4 unauthenticated" + nobody,
	}
	local := with(command, "truncated token", "none: the user of the machine has no token", "other key id", "none: the user of the machine has no token")
	inGo := map[string]string{}
	for name, cell := range api {
		inGo[name] = cell[strings.Index(cell, " ")+1:]
	}
	const noButton = "200; unrecorded: a button that is none of ours, such as one with a link, asks for nothing"
	const state = "none: it names no wait, and is for the session as it stands"
	slack := with(api, "wrong version", "200", "missing", noButton, "null", noButton, `"false"`, noButton, "0", "400 body_unreadable; unrecorded: Slack sends no such request", "two spellings", "400 body_unreadable; unrecorded: Slack sends no such request")
	return map[string]map[string]string{
		"Go Submit": with(inGo, "wrong version", "taken", "null", goType, `"false"`, goType, "0", goType, "two spellings", goType,
			"truncated token", "none: the caller is who the program says", "other key id", "none: the caller is who the program says"),
		"Go client":             with(api, "wrong version", "taken", "null", goType, `"false"`, goType, "0", goType, "two spellings", goType),
		"HTTP submit":           api,
		"HTTP answers":          api,
		"HTTP decisions":        with(named, "wrong version", "202", "missing", "409 nothing_to_decide"+unnamed, "null", "409 nothing_to_decide"+unnamed),
		"HTTP confirmation":     with(named, "wrong version", "202", "missing", "400 invalid_field", "null", "400 invalid_field"),
		"Helix":                 with(form, "two spellings", "400 unknown_field", "missing", "400 invalid_answer", "null", "400 invalid_answer"),
		"Strands":               form,
		"Stakpak decisions":     form,
		"Stakpak approve":       with(form, "wrong version", "202"),
		"Kortyx":                with(form, "wrong wait", "404 wait_not_found", `"false"`, `none: "false" is one of the words for no (docs/http.md)`),
		"CLI submit, server":    command,
		"CLI submit, data file": local,
		"CLI resume, data file": with(local, "wrong version", "10", "missing", "5 still_waiting"+unnamed, "null", "3 wait_not_found"+noWait, `"false"`, "3 wait_not_found"+noWait, "0", "3 wait_not_found"+noWait),
		"link": with(api, "wrong session", "404 wait_not_found", "wrong wait", "404 wait_not_found", "wrong nonce", "404 wait_not_found", "truncated nonce", "404 wait_not_found",
			"wrong digest", "404 wait_not_found", `"false"`, "400 invalid_answer", "0", "400 invalid_answer", "two spellings", noJSON, "truncated token", "404"+page, "other key id", "404"+page),
		"Slack": slack,
		"message": with(named, "wrong wait", state, "wrong version", state, "after restore", state, "after fork", state, "unknown id", state, `"false"`, "none: a message is any text",
			"expired", "none: it approves nothing, and may abandon what nobody has answered in time",
			"wrong digest", "500 corrupt_journal; unrecorded: a store that was changed is a fault, which goes to the log",
			"second use", "409 session_ended"+unnamed, "missing", "400 invalid_input"+unnamed, "null", "400 invalid_field"+unnamed, "0", "400 invalid_field"+unnamed, "two spellings", "400 unknown_field"+unnamed),
		"dismiss": with(named, "wrong digest", "none: it is a no, which is taken whatever is shown", "wrong version", "none: it is a no, of whatever version",
			`"false"`, "none: a reason is any text", "missing", "400 invalid_input", "null", "400 invalid_input"),
	}
}

// TestForgeries: every way to answer, with everything that is not the answer that is asked for. It is refused with
// its code, is recorded with the wait, and runs nothing; afterwards the right answer counts.
func TestForgeries(t *testing.T) {
	t.Parallel()
	table, all := forgeryTable(), forgeries()
	for _, door := range forgeryDoors() {
		row, listed := table[door.name]
		require.True(t, listed, door.name)
		require.Len(t, row, len(all), door.name)
		delete(table, door.name)
		t.Run(door.name, func(t *testing.T) {
			t.Parallel()
			w := newForgeryWorld(t)
			for i, f := range all {
				cell, listed := row[f.name]
				require.True(t, listed, "%s: %s", door.name, f.name)
				t.Run(f.name, func(t *testing.T) {
					if !strings.HasPrefix(cell, "none: ") {
						w.TB = t
						w.forged(door, f, fmt.Sprintf("s%d", i), cell)
					}
				})
			}
		})
	}
	require.Empty(t, table, "rows of no door")
}

// forged claims one forgery at one door.
func (w *forgeryWorld) forged(door forgeryDoor, f forgery, id, cell string) {
	w.Helper()
	good := w.start(cmp.Or(door.agent, "clerk"), id, cmp.Or(f.script, "deploy"))
	good.byNonce = door.byNonce
	c := good
	f.forge(w, &c)
	sessions := []string{id, id + "-other", id + "-fork"}
	before, recorded := w.stands(sessions...), len(w.refusals(c.session))
	got := door.give(w, c)
	want, unrecorded, silent := strings.Cut(cell, "; unrecorded: ")
	code := want[strings.LastIndex(want, " ")+1:]
	if door.noCode {
		want, _, _ = strings.Cut(want, " ")
	}
	require.Equal(w, want, got)
	if silent {
		require.NotEmpty(w, unrecorded)
		require.Len(w, w.refusals(c.session), recorded)
	} else if !f.asked {
		lines := w.refusals(c.session)
		require.Greater(w, len(lines), recorded, "it is recorded")
		require.Contains(w, lines[recorded:], c.wait+" "+code)
	}
	if !f.moves && !f.asked {
		require.Equal(w, before, w.stands(sessions...), "nothing but the audit has changed")
	}
	if f.name != "after delete" {
		w.goOn(c.version, c.session)
	}
	for _, of := range sessions {
		require.Zero(w, w.runs(of), "the tool ran")
	}
	if f.over {
		return
	}
	right := good
	if f.right != nil {
		f.right(w, &right)
	}
	right.who = cmp.Or(f.person, right.who)
	give := door.give
	if door.dismisses || door.oneUser && f.person != "" {
		give = giveGo
	}
	give(w, right)
	w.goOn(right.version, id)
	require.Equal(w, 1, w.runs(id), "the right answer counts, once")
}
