// Package slack tells people in a Slack channel what waits for them.
//
// Each wait is a card: a message with buttons. Whatever ends the wait edits its card. What a button
// asks is read and checked here too (interaction.go).
package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/visible"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Name of the channel.
const Name = "slack"

const (
	api        = "https://slack.com/api/"
	answerTime = 10 * time.Second
	maxAnswer  = 64 << 10
)

// Config says where cards go. Token and Channel are required.
type Config struct {
	// Token of the bot, xoxb-…, which may write to the channel.
	Token string
	// Channel is the id of the channel, such as C024BE91L.
	Channel string
	// Decides says that the buttons of an approval decide, since somebody takes what they ask
	// ([ReadInteraction]). Otherwise they lead to the link, if there is one.
	Decides bool
	// Arguments has the arguments of a call that waits for an approval, and the tool's preview, shown on
	// its card. Nobody approves on a card what it does not show: without, a card can only reject.
	Arguments bool
	// API is where Slack's methods are; empty is Slack's own.
	API string
}

// Channel posts and edits cards.
type Channel struct {
	cfg    Config
	client *http.Client
}

var _ notice.Channel = (*Channel)(nil)

// New returns the channel. It asks nothing of anybody.
func New(cfg Config) *Channel {
	cfg.API = cmp.Or(cfg.API, api)
	return &Channel{cfg: cfg, client: &http.Client{Timeout: answerTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Name returns the name of the channel.
func (c *Channel) Name() string { return Name }

// reference is where the cards of a notice are, by wait.
type reference struct {
	Channel string            `json:"channel"`
	Cards   map[string]string `json:"cards"` // the ts of each
}

// Send posts a card for each wait that opened, and edits those of the waits that have ended. Where it
// fails, what was posted is kept, so that no card is posted twice.
func (c *Channel) Send(ctx context.Context, m notice.Message) (json.RawMessage, error) {
	if m.Notice.Type == journal.NoticeTest {
		return nil, c.call(ctx, "chat.postMessage", message{Channel: c.cfg.Channel, Text: "Adjourn can post here."}, nil)
	}
	ref := reference{Cards: map[string]string{}}
	if len(m.Reference) > 0 {
		if err := json.Unmarshal(m.Reference, &ref); err != nil {
			return m.Reference, fmt.Errorf("%w: reference: %w", notice.ErrPermanent, err)
		}
	}
	err := c.sendAll(ctx, m, &ref)
	if len(ref.Cards) == 0 {
		return nil, err
	}
	kept, failed := json.Marshal(ref)
	return kept, errors.Join(err, failed)
}

func (c *Channel) sendAll(ctx context.Context, m notice.Message, ref *reference) error {
	for _, w := range m.Notice.Waits {
		var err error
		if w.Decision == "" {
			err = c.post(ctx, m, w, ref)
		} else {
			err = c.settle(ctx, m, w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// post posts the card of a wait, unless that was done before.
func (c *Channel) post(ctx context.Context, m notice.Message, w journal.NoticeWait, ref *reference) error {
	if ref.Cards[w.ID] != "" {
		return nil
	}
	card := message{Channel: c.cfg.Channel, Text: asks(m, w)}
	card.Blocks = []any{section(card.Text)}
	if w.Deadline != nil {
		card.Blocks = append(card.Blocks, section("Until "+w.Deadline.At.UTC().Format("2006-01-02 15:04 MST")+", then: "+string(w.Deadline.Outcome)))
	}
	var is session.Wait
	if w.Kind == session.WaitApproval && (c.cfg.Decides || c.cfg.Arguments) {
		var err error
		if is, err = m.Asked(ctx, w.ID); err != nil {
			return err
		}
	}
	whole := false
	if c.cfg.Arguments && is.ID != "" {
		var shown []any
		shown, whole = shows(is)
		card.Blocks = append(card.Blocks, shown...)
	}
	buttons, err := c.buttons(m, w, is, whole)
	if err != nil {
		return err
	}
	if len(buttons) > 0 {
		card.Blocks = append(card.Blocks, map[string]any{"type": "actions", "elements": buttons})
	}
	var posted struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	if err := c.call(ctx, "chat.postMessage", card, &posted); err != nil {
		return err
	}
	ref.Channel, ref.Cards[w.ID] = posted.Channel, posted.TS
	return nil
}

// maxText is how many characters Slack takes in one block of text.
const maxText = 3000

// shows are the blocks that show what is to be approved, and whether that is all of it.
func shows(w session.Wait) (blocks []any, whole bool) {
	whole = true
	add := func(text string) {
		if runes := []rune(text); len(runes) > maxText {
			const note = "…\n(cut: open the session to see all of it)"
			text, whole = string(runes[:maxText-utf8.RuneCountInString(note)])+note, false
		}
		blocks = append(blocks, section(text))
	}
	if p := w.Preview; p != nil {
		var lines []string
		for _, line := range []struct{ name, value string }{{"", p.Title}, {"Risk: ", string(p.Risk)}, {"The preview failed: ", p.Failed}} {
			if line.value != "" {
				lines = append(lines, line.name+visible.Line(line.value))
			}
		}
		if p.Money != nil {
			lines = append(lines, "Money: "+visible.Line(p.Money.Amount+" "+p.Money.Currency))
		}
		if len(lines) > 0 {
			add(strings.Join(lines, "\n"))
		}
		whole = whole && p.Diff == nil
	}
	add("Arguments: " + string(visible.JSON(w.Arguments)))
	return blocks, whole
}

// mayApprove reports whether one click may approve a call: of high risk, or of one that is not known, none.
func mayApprove(w session.Wait) bool {
	p := w.Preview
	return p == nil || p.Failed == "" && (p.Risk == "" || p.Risk == session.RiskLow || p.Risk == session.RiskMedium)
}

func (c *Channel) buttons(m notice.Message, w journal.NoticeWait, is session.Wait, whole bool) ([]any, error) {
	var all []any
	if c.cfg.Decides && is.Nonce != "" {
		value, err := json.Marshal(asked{Tenant: m.Key.Tenant, Session: m.Key.ID, Wait: w.ID, Nonce: is.Nonce})
		if err != nil {
			return nil, err
		}
		if whole && mayApprove(is) {
			all = append(all, map[string]any{"type": "button", "action_id": approveID, "text": plain("Approve"), "value": string(value)})
		}
		all = append(all, map[string]any{"type": "button", "action_id": rejectID, "text": plain("Reject"), "value": string(value)})
	}
	if link := m.Link(w.ID); link != "" {
		all = append(all, map[string]any{"type": "button", "action_id": "open", "text": plain("Open"), "url": link})
	}
	return all, nil
}

// errNoCard says that the card to edit is about to be posted.
var errNoCard = errors.New("the card is not posted yet")

// settle edits the card of a wait that has ended, if there is one: it says how, and has no buttons.
func (c *Channel) settle(ctx context.Context, m notice.Message, w journal.NoticeWait) error {
	opening, err := m.Opening(ctx, Name, w.ID)
	if err != nil || opening == nil {
		return err
	}
	var ref reference
	if len(opening.Reference) > 0 {
		if err := json.Unmarshal(opening.Reference, &ref); err != nil {
			return fmt.Errorf("%w: reference: %w", notice.ErrPermanent, err)
		}
	}
	ts := ref.Cards[w.ID]
	switch {
	case ts == "" && opening.State == journal.NoticePending:
		return errNoCard
	case ts == "":
		return nil // it was given up
	}
	how := strings.ToUpper(string(w.Decision[:1])) + string(w.Decision[1:])
	if w.By != "" && w.Decision != journal.DecisionExpired {
		how += " by " + w.By
	}
	if w.When != nil {
		how += ", " + w.When.UTC().Format("2006-01-02 15:04 MST")
	}
	text := asks(m, w)
	return c.call(ctx, "chat.update", message{Channel: ref.Channel, TS: ts, Text: text + "\n" + how, Blocks: []any{section(text), section(how)}}, nil)
}

// asks says what a card is about. It is plain text, which Slack does not read as markup.
func asks(m notice.Message, w journal.NoticeWait) string {
	text := fmt.Sprintf("%s: %s", cmp.Or(m.Notice.Agent, "An agent"), strings.ReplaceAll(string(w.Kind), "_", " "))
	if w.Tool != "" {
		text += " of " + w.Tool
	}
	return text + " (session " + m.Key.ID + ", " + w.ID + ")"
}

// message is a request of chat.postMessage or chat.update.
type message struct {
	Channel string `json:"channel"`
	TS      string `json:"ts,omitempty"`
	Text    string `json:"text"`
	Blocks  []any  `json:"blocks,omitempty"`
	// Nothing that a card links to is fetched for a preview.
	UnfurlLinks bool `json:"unfurl_links"`
	UnfurlMedia bool `json:"unfurl_media"`
	// Mrkdwn would read names as markup.
	Mrkdwn bool `json:"mrkdwn"`
}

func plain(text string) map[string]any { return map[string]any{"type": "plain_text", "text": text} }

func section(text string) map[string]any {
	return map[string]any{"type": "section", "text": plain(text)}
}

// call asks one of Slack's methods.
func (c *Channel) call(ctx context.Context, method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.API+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	answer, err := c.client.Do(r)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err := fmt.Errorf("slack %s answered %d", method, answer.StatusCode)
		if seconds, parsed := strconv.Atoi(answer.Header.Get("Retry-After")); parsed == nil && seconds > 0 && seconds < 24*3600 {
			return &notice.LaterError{Cause: err, After: time.Duration(seconds) * time.Second}
		}
		return err
	}
	var said struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("slack %s: %w", method, err)
	}
	switch {
	case said.Error == "message_not_found": // somebody has deleted the card
		return nil
	case !said.OK:
		return fmt.Errorf("slack %s: %s", method, cmp.Or(said.Error, "not ok"))
	case out == nil:
		return nil
	}
	return json.Unmarshal(raw, out)
}
