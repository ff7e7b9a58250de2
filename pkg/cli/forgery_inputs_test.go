package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// inputDoor is a door that takes a body of somebody's, with what an oracle says of one.
type inputDoor struct {
	name string
	// bodies approve the wait, each.
	bodies func(c claim) []string
	// send sends a body, or a form of it.
	send func(w *inputWorld, c claim, body string) *httptest.ResponseRecorder
	// says reports whether a body says yes to just this wait, or no; by another way than the program's.
	says func(c claim, body string) (yes, no bool)
	// script of the session; deploy unless it is said. What board waits for ada may not end.
	script string
}

// inputWorld is a world whose server is asked without a network, with one wait that is put back when somebody has
// answered it rightly.
type inputWorld struct {
	*forgeryWorld
	claim  claim
	asked  journal.WaitRecord
	counts map[string]int
}

// yesWords and noWords are what clients of other systems say (docs/http.md).
var (
	yesWords = []string{"true", "y", "yes", "approve"}
	noWords  = []string{"false", "n", "no", "deny", "reject"}
)

// plain reads true, false, a word for it, or an object with approved, as foreign forms have it.
func plain(v any) (yes, no bool) {
	switch v := v.(type) {
	case bool:
		return v, !v
	case string:
		word := strings.ToLower(strings.TrimSpace(v))
		return slices.Contains(yesWords, word), slices.Contains(noWords, word)
	case map[string]any:
		said, is := v["approved"].(bool)
		return is && said, is && !said
	case []any:
		if len(v) == 1 {
			return plain(v[0])
		}
	}
	return false, false
}

func (c claim) is(v any) bool { return v == any(c.wait) || v == any(c.nonce) }

// object parses a body as JSON; nil where it is no object.
func object(body string) map[string]any {
	var v map[string]any
	_ = json.Unmarshal([]byte(body), &v)
	return v
}

// ownAnswer is the oracle of our own form: the exact wait, by its id or nonce, and approved, a boolean.
func ownAnswer(c claim, a map[string]any) (yes, no bool) {
	names := func(field string, is any) bool { return a[field] == nil || a[field] == is }
	said, is := a["approved"].(bool)
	exact := names("waitId", c.wait) && names("approvalId", c.nonce) && (a["waitId"] != nil || a["approvalId"] != nil)
	gives := a["kind"] == "client-tool-result" && exact && a["error"] != nil // a client that gives up says no
	return exact && is && said && a["kind"] == "approval-response", exact && is && !said || gives
}

func inputDoors() []inputDoor {
	at := func(end string) func(*inputWorld, claim, string) *httptest.ResponseRecorder {
		return func(w *inputWorld, c claim, body string) *httptest.ResponseRecorder {
			return w.serve("/sessions/"+c.session+"/"+strings.ReplaceAll(end, "WAIT", c.wait), "application/json", body, http.Header{"Authorization": {"Bearer " + w.keys["ada"]}})
		}
	}
	own := func(c claim) []string {
		return []string{
			fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approvalId":%q,"approved":true}`, c.wait, c.nonce),
			fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approvalId":%q,"approved":true,"reason":"fine","editedInput":{}}`, c.wait, c.nonce),
			fmt.Sprintf(`{"kind":"approval-response","approvalId":%q,"approved":true}`, c.nonce),
		}
	}
	nothing := func(claim, string) (yes, no bool) { return false, false }
	doors := []inputDoor{
		{name: "submit", bodies: own, send: at("submit"), says: func(c claim, body string) (yes, no bool) { return ownAnswer(c, object(body)) }},
		{name: "answers", send: at("answers"), bodies: func(c claim) []string {
			return []string{fmt.Sprintf(`{"answers":[%s]}`, own(c)[0]), fmt.Sprintf(`{"answers":[%s,%s]}`, own(c)[2], own(c)[1])}
		}, says: func(c claim, body string) (yes, no bool) {
			list, _ := object(body)["answers"].([]any)
			return anySays(list, func(v any) (bool, bool) { a, _ := v.(map[string]any); return ownAnswer(c, a) })
		}},
		{name: "decisions", send: at("resume"), bodies: func(c claim) []string {
			return []string{fmt.Sprintf(`{"decisions":{"approve":[%q],"reject":[],"reason":"x"}}`, c.wait), fmt.Sprintf(`{"mode":"with_decisions","decisions":{"reject":[],"approve":[%q],"approveAll":true}}`, c.wait)}
		}, says: func(c claim, body string) (yes, no bool) {
			d, _ := object(body)["decisions"].(map[string]any)
			approve, _ := d["approve"].([]any)
			reject, _ := d["reject"].([]any)
			named := slices.ContainsFunc(approve, c.is)
			return named || d["approveAll"] == true && slices.ContainsFunc(slices.Concat(approve, reject), c.is), slices.ContainsFunc(reject, c.is) || d["rejectAll"] == true
		}},
		{name: "confirmation", send: at("resume"), bodies: func(c claim) []string {
			return []string{fmt.Sprintf(`{"confirmation":{"waitId":%q,"approved":true,"reason":"x"}}`, c.wait)}
		}, says: func(c claim, body string) (yes, no bool) {
			d, _ := object(body)["confirmation"].(map[string]any)
			// A no may leave the wait out: it is for the one approval that is open.
			return d["waitId"] == any(c.wait) && d["approved"] == true, (d["waitId"] == nil || d["waitId"] == any(c.wait)) && d["approved"] == false
		}},
		{name: "Strands", send: at("answers"), bodies: func(c claim) []string {
			return []string{
				fmt.Sprintf(`[{"interruptResponse":{"interruptId":%q,"response":true}}]`, c.nonce),
				fmt.Sprintf(`[{"interruptResponse":{"interruptId":%q,"response":{"approved":true,"reason":"x"}}}]`, c.wait),
				fmt.Sprintf(`{"interruptResponse":{"interruptId":%q,"response":"yes"}}`, c.nonce),
			}
		}, says: func(c claim, body string) (yes, no bool) {
			var list []any
			if json.Unmarshal([]byte(body), &list) != nil {
				list = []any{object(body)}
			}
			return anySays(list, func(v any) (bool, bool) {
				item, _ := v.(map[string]any)
				r, _ := item["interruptResponse"].(map[string]any)
				yes, no := plain(r["response"])
				return yes && c.is(r["interruptId"]), no && c.is(r["interruptId"])
			})
		}},
		{name: "Stakpak", send: at("answers"), bodies: func(c claim) []string {
			return []string{
				fmt.Sprintf(`{"run_id":"r","decisions":{%q:{"action":"accept"}}}`, c.nonce), fmt.Sprintf(`{"approve":[%q],"reject":[]}`, c.nonce),
				fmt.Sprintf(`{"approve":[%q],"approve_all":false,"run_id":1}`, c.wait),
			}
		}, says: func(c claim, body string) (yes, no bool) {
			o := object(body)
			decisions, _ := o["decisions"].(map[string]any)
			for _, id := range []string{c.wait, c.nonce} {
				d, _ := decisions[id].(map[string]any)
				yes, no = yes || d["action"] == "accept", no || d["action"] == "reject"
			}
			approve, _ := o["approve"].([]any)
			reject, _ := o["reject"].([]any)
			named := slices.ContainsFunc(slices.Concat(approve, reject), c.is)
			return yes || slices.ContainsFunc(approve, c.is) || o["approve_all"] == true && named, no || slices.ContainsFunc(reject, c.is) || o["reject_all"] == true
		}},
		{name: "Kortyx", send: at("answers"), bodies: func(c claim) []string {
			return []string{
				fmt.Sprintf(`{"token":%q,"requestId":%q,"selected":"approve"}`, c.nonce, c.wait),
				fmt.Sprintf(`{"resume":{"token":%q,"requestId":%q,"choice":{"id":"yes"},"cancel":false}}`, c.nonce, c.nonce),
			}
		}, says: func(c claim, body string) (yes, no bool) {
			o := object(body)
			if inner, is := o["resume"].(map[string]any); is {
				o = inner
			}
			if o["token"] != any(c.nonce) || !c.is(o["requestId"]) {
				return false, false
			}
			no = o["cancel"] == true
			for _, field := range []string{"selected", "choice", "choices"} {
				v := o[field]
				for { // a choice is a text, an object with its id, or a list of one
					if list, is := v.([]any); is && len(list) == 1 {
						v = list[0]
					} else if id, is := v.(map[string]any); is {
						v = id["id"]
					} else {
						break
					}
				}
				y, n := plain(v)
				yes, no = yes || y, no || n
			}
			return yes, no
		}},
		{name: "link", bodies: func(claim) []string {
			return []string{"decision=approve&reason=fine", "decision=approve", "reason=&decision=approve&word="}
		}, send: func(w *inputWorld, c claim, body string) *httptest.ResponseRecorder {
			return w.serve("/a/"+w.token(c), "application/x-www-form-urlencoded", body, nil)
		}, says: func(_ claim, body string) (yes, no bool) {
			values, err := url.ParseQuery(body)
			said := values["decision"]
			one := err == nil && len(said) == 1
			return one && said[0] == "approve", one && said[0] == "deny"
		}},
		{name: "token of a link", bodies: func(c claim) []string { return []string{c.digest} }, send: func(w *inputWorld, _ claim, body string) *httptest.ResponseRecorder {
			return w.serve("/a/"+url.PathEscape(body), "application/x-www-form-urlencoded", "decision=approve", nil)
		}, says: func(c claim, body string) (yes, no bool) { return body == c.digest, false }},
		{name: "Slack", bodies: func(c claim) []string {
			value, _ := json.Marshal(fmt.Sprintf(`{"tenant":"default","session":%q,"wait":%q,"nonce":%q}`, c.session, c.wait, c.nonce))
			return []string{fmt.Sprintf(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"UADA"},"actions":[{"action_id":"approve","value":%s}]}`, value)}
		}, send: func(w *inputWorld, _ claim, body string) *httptest.ResponseRecorder {
			form := url.Values{"payload": {body}}.Encode()
			at := strconv.FormatInt(w.now().Unix(), 10)
			return w.serve("/slack/interactions", "application/x-www-form-urlencoded", form, http.Header{
				"X-Slack-Request-Timestamp": {at}, "X-Slack-Signature": {slackSignature(slackSecret, at, form)},
			})
		}, says: func(c claim, body string) (yes, no bool) {
			var p struct {
				Actions []struct {
					ID    string `json:"action_id"`
					Value string
				}
			}
			if json.Unmarshal([]byte(body), &p) != nil || len(p.Actions) != 1 {
				return false, false
			}
			var value struct{ Tenant, Session, Wait, Nonce string }
			exact := json.Unmarshal([]byte(p.Actions[0].Value), &value) == nil && value.Tenant == session.DefaultTenant && value.Session == c.session && value.Wait == c.wait && value.Nonce == c.nonce
			return exact && p.Actions[0].ID == "approve", exact && p.Actions[0].ID == "reject"
		}},
		{name: "message", script: "board", send: at("messages"), says: nothing, bodies: func(claim) []string {
			return []string{`{"message":"stop","task":1}`, `{"message":[{"type":"text","text":"stop"}]}`}
		}},
		{name: "dismiss", script: "board", send: at("waits/WAIT/dismiss"), says: nothing, bodies: func(claim) []string { return []string{`{"reason":"withdrawn"}`} }},
		{name: "extend", script: "board", send: at("waits/WAIT/extend"), says: nothing, bodies: func(claim) []string {
			return []string{fmt.Sprintf(`{"deadline":%q,"reason":"x"}`, time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339))}
		}},
		{name: "delegate", script: "board", send: at("waits/WAIT/delegate"), says: nothing, bodies: func(claim) []string { return []string{`{"to":"ada","reason":"x"}`} }},
	}
	// What shares an address may be said in each form that is taken there.
	for _, names := range [][]string{{"answers", "Strands", "Stakpak", "Kortyx"}, {"decisions", "confirmation"}} {
		var forms []func(claim, string) (bool, bool)
		for _, door := range doors {
			if slices.Contains(names, door.name) {
				forms = append(forms, door.says)
			}
		}
		for i := range doors {
			if slices.Contains(names, doors[i].name) {
				doors[i].says = func(c claim, body string) (yes, no bool) {
					for _, says := range forms {
						y, n := says(c, body)
						yes, no = yes || y, no || n
					}
					return yes, no
				}
			}
		}
	}
	return doors
}

// anySays reports of a list whether anything in it says yes, and whether anything says no.
func anySays(list []any, says func(any) (bool, bool)) (yes, no bool) {
	for _, v := range list {
		y, n := says(v)
		yes, no = yes || y, no || n
	}
	return yes, no
}

// newInputWorld has a session that waits at a door.
func newInputWorld(t testing.TB, door inputDoor) *inputWorld {
	t.Helper()
	w := &inputWorld{forgeryWorld: newForgeryWorld(t), counts: map[string]int{}}
	agentName, script := "clerk", "deploy"
	if door.script != "" {
		agentName, script = "mild", door.script
	}
	w.claim = w.start(agentName, "one", script)
	w.start("clerk", "other", "deploy")
	w.asked = w.waits("one")[0]
	if door.name == "token of a link" {
		w.claim.digest = w.token(w.claim) // what is changed at this door
	}
	return w
}

func (w *inputWorld) serve(path, media, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.Context(), http.MethodPost, path, strings.NewReader(body))
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Content-Type", media)
	out := httptest.NewRecorder()
	w.handlers[0].ServeHTTP(out, r)
	return out
}

// try sends a body, and holds what it did to the oracle.
func (w *inputWorld) try(t *testing.T, door inputDoor, body string) {
	out := door.send(w, w.claim, body)
	if out.Code >= 500 {
		t.Fatalf("%s: status %d for %q: %s", door.name, out.Code, body, out.Body)
	}
	w.counts[strconv.Itoa(out.Code)]++
	for item, err := range w.store.Items(w.Context(), keyOf("one"), store.KindWait, w.claim.wait) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Wait.State == session.WaitOpen {
			if len(item.Wait.Acts) > 0 || len(item.Wait.Votes) > 0 {
				t.Fatalf("%s: %q has changed the wait", door.name, body)
			}
			continue
		}
		// It waits again.
		again := *item.Wait
		again.State, again.Answer, again.Held, again.HeldLast, again.Noticed = session.WaitOpen, nil, false, false, false
		again.Due = w.asked.Due
		if _, err := w.store.Update(w.Context(), keyOf("one"), store.WaitItem(again, item.Rev)); err != nil {
			t.Fatal(err)
		}
		yes, no := door.says(w.claim, body)
		a := item.Wait.Answer
		switch {
		case a == nil || a.Kind != session.AnswerApproval || a.Approved == nil:
			t.Fatalf("%s: %q has ended the wait: %v", door.name, body, item.Wait.State)
		case *a.Approved && !yes, !*a.Approved && !no:
			t.Fatalf("%s: approved=%v is recorded for %q", door.name, *a.Approved, body)
		}
		w.counts[fmt.Sprintf("approved=%v", *a.Approved)]++
	}
}

// member is a field of JSON with its value.
var member = regexp.MustCompile(`"[A-Za-z_0-9-]+":("(\\.|[^"\\])*"|true|false|null|[0-9]+|\[[^\[\]]*\]|\{[^{}]*\})`)

// values take the place of what a field says.
var values = []string{`true`, `false`, `null`, `0`, `1`, `""`, `"true"`, `"false"`, `"yes"`, `"no"`, `[]`, `{}`, `[true]`, `{"approved":true}`, `"approve"`, `"accept"`, `"approval-response"`, `-0`, `1e999`, `"\u0074rue"`, `"\ud800"`}

// twins look like a letter, or count as one where letters are folded.
var twins = map[string]string{"a": "\u0430", "e": "\u0435", "o": "\u043e", "p": "\u0440", "i": "\u0131", "s": "\u017f", "k": "\u212a", "w": "\uff57", "1": "\uff11", "-": "\u2010", "t": `\u0074`}

// mutate changes a body as somebody might who wants it to count: what it names, says and is written in.
func mutate(r *rand.Rand, c claim, other, body string) string {
	for range 1 + r.IntN(3) {
		body = mutateOnce(r, c, other, body)
	}
	return body
}

func mutateOnce(r *rand.Rand, c claim, other, body string) string {
	found := member.FindAllStringIndex(body, -1)
	at := r.IntN(len(body) + 1)
	if len(found) > 0 && r.IntN(3) > 0 {
		m := found[r.IntN(len(found))]
		before, field, after := body[:m[0]], body[m[0]:m[1]], body[m[1]:]
		name, value, _ := strings.Cut(field, ":")
		switch r.IntN(7) {
		case 0: // left out
			return strings.NewReplacer("{,", "{", ",,", ",", ",}", "}").Replace(before + after)
		case 1: // there twice
			return before + field + "," + name + ":" + values[r.IntN(len(values))] + after
		case 2: // in another spelling, also beside itself
			spelled := `"` + strings.ToUpper(name[1:2]) + name[2:]
			if r.IntN(2) == 0 {
				return before + field + "," + spelled + ":" + value + after
			}
			return before + spelled + ":" + value + after
		case 3: // with letters that look alike
			letter := slices.Sorted(maps.Keys(twins))[r.IntN(len(twins))]
			return before + strings.Replace(field, letter, twins[letter], 1) + after
		case 4: // deeper, or in a list
			return before + name + ":[" + value + "]" + after
		case 5: // with the value of another field
			o := found[r.IntN(len(found))]
			_, swapped, _ := strings.Cut(body[o[0]:o[1]], ":")
			return before + name + ":" + swapped + after
		}
		return before + name + ":" + values[r.IntN(len(values))] + after
	}
	switch r.IntN(8) {
	case 0:
		return strings.ReplaceAll(body, c.nonce, other)
	case 1:
		return strings.ReplaceAll(body, c.nonce, c.nonce[:len(c.nonce)-1-r.IntN(len(c.nonce)-1)])
	case 2:
		return strings.ReplaceAll(body, c.wait, []string{"w9-9", "w2-2", "c2-1", "W2-1", "w02-1", "w2-1 ", ""}[r.IntN(7)])
	case 3:
		return body[:at]
	case 4:
		return body[:at] + string(rune(r.IntN(0x3000))) + body[at:]
	case 5:
		if at < len(body) {
			return body[:at] + string([]byte{body[at] ^ 1<<r.IntN(8)}) + body[at+1:]
		}
	case 6:
		return body + body[at:]
	}
	return strings.ToUpper(body[:at]) + body[at:]
}

// inputs is how many bodies are tried, at all doors together: ADJOURN_FORGERIES, in make forgeries.
func inputs(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ADJOURN_FORGERIES")
	if text == "" {
		return 5000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestForgeries_inputs changes bodies and tokens that approve, by turns of a seed, and tries them at every door:
// none breaks anything of ours, and what is recorded is what the body says, of just the wait that is there.
func TestForgeries_inputs(t *testing.T) {
	t.Parallel()
	doors := inputDoors()
	each := (inputs(t) + len(doors) - 1) / len(doors)
	for i, door := range doors {
		t.Run(door.name, func(t *testing.T) {
			t.Parallel()
			w := newInputWorld(t, door)
			other, r := w.waits("other")[0].Wait.Nonce, rand.New(rand.NewPCG(13, uint64(i)))
			bodies := door.bodies(w.claim)
			began := time.Now()
			for range each {
				w.try(t, door, mutate(r, w.claim, other, bodies[r.IntN(len(bodies))]))
			}
			t.Logf("%d inputs in %v: %v", each, time.Since(began).Round(time.Millisecond), w.counts)
			require.Zero(t, w.runs("one"))
			require.LessOrEqual(t, len(w.refusals("one")), 101, "what is recorded is bounded")
			// A body as it should be counts still, where the caller may.
			w.try(t, door, bodies[0])
			if door.script == "" {
				require.NotZero(t, w.counts["approved=true"])
			}
		})
	}
}

// FuzzForgeries tries any body at any door, with the nonce of its wait where a body has nonceWord.
func FuzzForgeries(f *testing.F) {
	const nonceWord = "w2-1_NONCE"
	doors := inputDoors()
	worlds := make([]*inputWorld, len(doors))
	for i, door := range doors {
		worlds[i] = newInputWorld(f, door)
		for _, body := range door.bodies(claim{session: "one", wait: "w2-1", nonce: nonceWord, digest: "adl_x"}) {
			f.Add(uint8(i), body) //nolint:gosec // a handful of doors
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, body string) {
		w, door := worlds[int(i)%len(doors)], doors[int(i)%len(doors)]
		w.TB = t
		w.try(t, door, strings.ReplaceAll(body, nonceWord, w.claim.nonce))
	})
}
