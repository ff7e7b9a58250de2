package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

const (
	approveID = "approve"
	rejectID  = "reject"
	// window is how old a request may be.
	window = 5 * time.Minute
)

// ErrForged says that a request is not one that Slack has just sent.
var ErrForged = errors.New("not a request of Slack")

// ErrStranger says that nobody is known who the person in Slack is: Slack's signature says that Slack
// sent a request, and not that whoever clicked may decide.
var ErrStranger = errors.New("nobody here is known as that person in Slack")

// asked is what a button asks, as it is kept in its value.
type asked struct {
	Tenant  string `json:"tenant"`
	Session string `json:"session"`
	Wait    string `json:"wait"`
	Nonce   string `json:"nonce"`
}

// Decision is what a person has clicked.
type Decision struct {
	Key         session.Key
	Wait, Nonce string
	Approved    bool
	// Who is the subject that the person in Slack stands for.
	Who string
}

// People says which subject a person in Slack is, by "TEAM/USER".
type People map[string]string

// ReadPeople reads JSON, {"T024BE7LD/U2147483697": "ana"}, or the file of JSON at a path.
func ReadPeople(from string) (People, error) {
	raw, name := []byte(from), "the list"
	if !strings.HasPrefix(strings.TrimSpace(from), "{") {
		read, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		raw, name = read, from
	}
	var people People
	if err := json.Unmarshal(raw, &people); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for person, who := range people {
		team, user, _ := strings.Cut(person, "/")
		switch {
		case team == "" || user == "":
			return nil, fmt.Errorf("%s: %q: name a person as TEAM/USER", name, person)
		case strings.TrimSpace(who) != who || who == "":
			return nil, fmt.Errorf("%s: %q: an empty name is nobody", name, person)
		}
	}
	return people, nil
}

// Verify returns an error unless Slack signed a request, within five minutes of now.
func Verify(secret string, header http.Header, body []byte, now time.Time) error {
	at := header.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if secret == "" || err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > window {
		return fmt.Errorf("%w: its time", ErrForged)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "v0:%s:", at)
	_, _ = mac.Write(body)
	if !hmac.Equal([]byte("v0="+hex.EncodeToString(mac.Sum(nil))), []byte(header.Get("X-Slack-Signature"))) {
		return fmt.Errorf("%w: its signature", ErrForged)
	}
	return nil
}

// ReadInteraction returns what a click on a button asks, of a request that was verified. ok is false
// when it asks for nothing, as a button with a link does. [ErrStranger] says that who clicked may not
// decide.
func ReadInteraction(body []byte, people People) (d Decision, ok bool, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return Decision{}, false, fmt.Errorf("%w: %w", ErrForged, err)
	}
	var payload struct {
		Type string `json:"type"`
		Team struct {
			ID string `json:"id"`
		} `json:"team"`
		User struct {
			ID     string `json:"id"`
			TeamID string `json:"team_id"`
		} `json:"user"`
		Actions []struct {
			ActionID string `json:"action_id"`
			Value    string `json:"value"`
		} `json:"actions"`
	}
	if err := json.Unmarshal([]byte(form.Get("payload")), &payload); err != nil {
		return Decision{}, false, fmt.Errorf("%w: %w", ErrForged, err)
	}
	if payload.Type != "block_actions" || len(payload.Actions) != 1 {
		return Decision{}, false, nil
	}
	action := payload.Actions[0]
	if action.ActionID != approveID && action.ActionID != rejectID {
		return Decision{}, false, nil
	}
	// In a shared channel the person's team is another one than the channel's.
	team := payload.User.TeamID
	if team == "" {
		team = payload.Team.ID
	}
	who := people[team+"/"+payload.User.ID]
	if team == "" || payload.User.ID == "" || who == "" {
		return Decision{}, false, fmt.Errorf("%w: %s/%s", ErrStranger, team, payload.User.ID)
	}
	var a asked
	if err := json.Unmarshal([]byte(action.Value), &a); err != nil {
		return Decision{}, false, fmt.Errorf("%w: %w", ErrForged, err)
	}
	key := session.Key{Tenant: a.Tenant, ID: a.Session}
	if err := key.Validate(); err != nil || a.Wait == "" || a.Nonce == "" {
		return Decision{}, false, fmt.Errorf("%w: what its button names", ErrForged)
	}
	return Decision{Key: key, Wait: a.Wait, Nonce: a.Nonce, Approved: action.ActionID == approveID, Who: who}, true, nil
}
