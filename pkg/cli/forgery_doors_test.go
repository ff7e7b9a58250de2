package cli_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// claim is what somebody who answers claims: which wait it is, who they are, and what they say.
type claim struct {
	session, wait, nonce, digest string
	// said is whether it is approved, as JSON; empty where it is left out.
	said string
	who  string
	// version of the program that takes it.
	version int
	// cut says that the credentials are cut off at their end, foreign that another key made them.
	cut, foreign bool
	// byNonce says that the door names an approval by its nonce alone.
	byNonce bool
}

// credential is a key of an API as it is claimed.
func (c claim) credential(key string) string {
	if c.foreign {
		return "adj_" + strings.Repeat("ab", (len(key)-len("adj_"))/2)
	}
	return c.cutOff(key)
}

func (c claim) cutOff(text string) string {
	if c.cut {
		return text[:len(text)-1]
	}
	return text
}

// field is a field of JSON with what is said; nothing where it is left out.
func (c claim) field(name string) string {
	if c.said == "" {
		return ""
	}
	return fmt.Sprintf(`,%q:%s`, name, c.said)
}

// forgeryDoor is one way to answer. Its give claims, and returns what came back: a status or an exit code, with the
// code of the refusal.
type forgeryDoor struct {
	name string
	give func(w *forgeryWorld, c claim) string
	// agent whose sessions are answered there; clerk unless it is said.
	agent string
	// oneUser says that the door knows one person only, ada.
	oneUser bool
	// byNonce says that it names an approval by its nonce alone.
	byNonce bool
	// noCode says that what comes back is a page or a status, without a code: the audit has it.
	noCode bool
	// dismisses says that the door ends a wait without approving it.
	dismisses bool
}

func forgeryDoors() []forgeryDoor {
	json := func(path func(claim) string, body func(claim) string) func(*forgeryWorld, claim) string {
		return func(w *forgeryWorld, c claim) string { return w.post(c, path(c), body(c)) }
	}
	at := func(end string) func(claim) string {
		return func(c claim) string { return "/sessions/" + c.session + "/" + end }
	}
	return []forgeryDoor{
		{name: "Go Submit", give: giveGo},
		{name: "Go client", give: giveClient},
		{name: "HTTP submit", give: json(at("submit"), func(c claim) string {
			return fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approvalId":%q%s}`, c.wait, c.nonce, c.field("approved"))
		})},
		{name: "HTTP answers", give: json(at("answers"), func(c claim) string {
			return fmt.Sprintf(`{"answers":[{"kind":"approval-response","waitId":%q,"approvalId":%q%s}]}`, c.wait, c.nonce, c.field("approved"))
		})},
		{name: "HTTP decisions", give: json(at("resume"), func(c claim) string {
			if c.said == "true" {
				return fmt.Sprintf(`{"decisions":{"approve":[%q]}}`, c.wait)
			}
			return fmt.Sprintf(`{"decisions":{"editedInput":{%q:{}}%s}}`, c.wait, c.field("approve"))
		})},
		{name: "HTTP confirmation", give: json(at("resume"), func(c claim) string {
			return fmt.Sprintf(`{"confirmation":{"waitId":%q%s}}`, c.wait, c.field("approved"))
		})},
		{name: "Helix", byNonce: true, give: json(at("submit"), func(c claim) string {
			return fmt.Sprintf(`{"kind":"approval-response","approvalId":%q%s}`, c.nonce, c.field("approved"))
		})},
		{name: "Strands", byNonce: true, give: json(at("answers"), func(c claim) string {
			response := c.field("response")
			if c.said == `"false"` {
				response = `,"response":{"approved":"false"}`
			}
			return fmt.Sprintf(`[{"interruptResponse":{"interruptId":%q%s}}]`, c.nonce, response)
		})},
		{name: "Stakpak decisions", byNonce: true, give: json(at("answers"), func(c claim) string {
			action := strings.TrimPrefix(c.field("action"), ",")
			if c.said == "true" {
				action = `"action":"accept"`
			}
			return fmt.Sprintf(`{"run_id":"r","decisions":{%q:{%s}}}`, c.nonce, action)
		})},
		{name: "Stakpak approve", byNonce: true, give: json(at("answers"), func(c claim) string {
			if c.said == "true" {
				return fmt.Sprintf(`{"approve":[%q]}`, c.nonce)
			}
			return fmt.Sprintf(`{"run_id":%q%s}`, c.nonce, c.field("approve"))
		})},
		{name: "Kortyx", give: json(at("answers"), func(c claim) string {
			selected := c.field("selected")
			if c.said == "true" {
				selected = `,"selected":"approve"`
			}
			return fmt.Sprintf(`{"token":%q,"requestId":%q%s}`, c.nonce, c.wait, selected)
		})},
		{name: "CLI submit, data file", oneUser: true, give: func(w *forgeryWorld, c claim) string { return w.command(c, false, c.submitWords()...) }},
		{name: "CLI submit, server", give: func(w *forgeryWorld, c claim) string { return w.command(c, true, c.submitWords()...) }},
		{name: "CLI resume, data file", oneUser: true, give: func(w *forgeryWorld, c claim) string {
			switch c.said {
			case "":
				return w.command(c, false, "resume", c.session)
			case "true":
				return w.command(c, false, "resume", c.session, "--approve", c.wait)
			}
			return w.command(c, false, "resume", c.session, "--approve", strings.Trim(c.said, `"`))
		}},
		{name: "link", noCode: true, give: giveLink},
		{name: "Slack", give: giveSlack},
		{name: "message", agent: "mild", dismisses: true, give: json(at("messages"), func(c claim) string {
			return "{" + strings.TrimPrefix(strings.Replace(c.field("message"), ":true", `:"stop"`, 1), ",") + "}"
		})},
		{name: "dismiss", dismisses: true, give: json(func(c claim) string { return at("waits/" + c.wait + "/dismiss")(c) }, func(c claim) string {
			return "{" + strings.TrimPrefix(strings.Replace(c.field("reason"), ":true", `:"withdrawn"`, 1), ",") + "}"
		})},
	}
}

func (c claim) submitWords() []string {
	words := []string{"submit", c.session, c.wait, "--no-resume"}
	switch c.said {
	case "":
		return words
	case "true":
		return append(words, "--approve")
	}
	return append(words, "--approve="+strings.Trim(c.said, `"`))
}

// answer is what a claim says in Go, where null and "false" cannot be said.
func (c claim) approved() *bool {
	if c.said == "true" {
		return new(true)
	}
	return nil
}

func giveGo(w *forgeryWorld, c claim) string {
	_, err := w.programs[c.version].Runtime.Submit(w.Context(), runtime.SubmitParams{
		Key: keyOf(c.session), Caller: runtime.Caller{Who: c.who, From: "test"},
		Answer: session.Answer{Wait: c.wait, ApprovalID: c.nonce, Kind: session.AnswerApproval, Approved: c.approved()},
	})
	if err != nil {
		return string(runtime.AsError(err).Code)
	}
	return "taken"
}

func giveClient(w *forgeryWorld, c claim) string {
	api, err := client.New(client.Config{URL: w.urls[c.version], Token: c.credential(w.keys[c.who])})
	require.NoError(w, err)
	_, err = api.Submit(w.Context(), client.SubmitParams{SessionID: c.session, Answer: client.SubmitRequest{
		WaitID: c.wait, ApprovalID: c.nonce, Kind: session.AnswerApproval, Approved: c.approved(),
	}})
	if err == nil {
		return "taken"
	}
	var refused *client.Error
	require.ErrorAs(w, err, &refused)
	return fmt.Sprintf("%d %s", refused.Problem.Status, refused.Code())
}

// command carries out a command, and returns its exit code with the code of its refusal.
func (w *forgeryWorld) command(c claim, remote bool, words ...string) string {
	w.Helper()
	env := map[string]string{configHome: w.env[configHome]}
	where := []string{"--data", w.data}
	if remote {
		where = []string{"--url", w.urls[c.version]}
		env["ADJOURN_TOKEN"] = c.credential(w.keys[c.who])
	}
	var stdout, stderr bytes.Buffer
	code := cli.Run(w.Context(), cli.Config{
		Registry: func() (*agent.Registry, error) { return w.registry(c.version)() }, Program: "adjourn", Args: append(where, append(words, "-o", "json")...),
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Env: func(name string) string { return env[name] }, Who: c.who, Now: w.now,
	})
	var manifest struct{ Error struct{ Code string } }
	_ = json.Unmarshal(stdout.Bytes(), &manifest)
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, manifest.Error.Code))
}

// token is that of a link as it is claimed.
func (w *forgeryWorld) token(c claim) string {
	w.Helper()
	keys := w.links
	if c.foreign {
		var err error
		keys, err = grant.ParseKeys(grantKeys("two", "1"))
		require.NoError(w, err)
	}
	text, err := keys.Sign(grant.Grant{
		Tenant: session.DefaultTenant, Session: c.session, Wait: c.wait, Nonce: c.nonce, Digest: c.digest,
		Decisions: grant.Decisions(), Recipient: c.who, Expires: w.now().Add(24 * time.Hour),
	})
	require.NoError(w, err)
	return c.cutOff(text)
}

func giveLink(w *forgeryWorld, c claim) string {
	form := url.Values{"reason": {"fine"}}
	if c.said != "" {
		form.Set("decision", strings.Trim(c.said, `"`))
	}
	if c.said == "true" {
		form.Set("decision", "approve")
	}
	return w.send(c, "/a/"+w.token(c), "application/x-www-form-urlencoded", form.Encode(), nil)
}

// giveSlack sends what Slack would where somebody presses a button of a card with such a value.
func giveSlack(w *forgeryWorld, c claim) string {
	value, err := json.Marshal(fmt.Sprintf(`{"tenant":"default","session":%q,"wait":%q,"nonce":%q}`, c.session, c.wait, c.nonce))
	require.NoError(w, err)
	action := c.field("action_id")
	if c.said == "true" {
		action = `,"action_id":"approve"`
	}
	body := url.Values{"payload": {fmt.Sprintf(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U%s"},"actions":[{"value":%s%s}]}`, strings.ToUpper(c.who), value, action)}}.Encode()
	secret := slackSecret
	if c.foreign {
		secret = strings.ToUpper(secret)
	}
	at := fmt.Sprint(w.now().Unix())
	signature := c.cutOff(slackSignature(secret, at, body))
	return w.send(c, "/slack/interactions", "application/x-www-form-urlencoded", body, http.Header{"X-Slack-Request-Timestamp": {at}, "X-Slack-Signature": {signature}})
}

func slackSignature(secret, at, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("v0:" + at + ":" + body)) // it never fails
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}
