// Package slack tells people in a Slack channel what waits for them.
//
// Each wait is a card: a message with buttons. Whatever ends the wait, or is done to it, edits its card. What
// a button asks is read and checked here too (interaction.go).
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

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/outbox"
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
	// SignedIn says that whoever is known in Slack counts as signed in. Otherwise no button decides what only
	// they may who have.
	SignedIn bool
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
	cfg.API = strings.TrimSuffix(cmp.Or(cfg.API, api), "/") + "/"
	return &Channel{cfg: cfg, client: &http.Client{Timeout: answerTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Name returns the name of the channel.
func (c *Channel) Name() string { return Name }

// reference is where the cards of a notice are, by wait.
type reference struct {
	Channel string            `json:"channel"`
	Cards   map[string]string `json:"cards"` // the ts of each
}

// Send posts a card for each wait that opened, and edits those of the waits that something was done to or
// that have ended. Where it fails, what was posted is kept, so that nothing is posted twice.
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
		switch {
		case w.Decision != "":
			err = c.settle(ctx, m, w)
		case m.Notice.Type == journal.NoticeSuspended:
			err = c.post(ctx, m, w, ref)
		default:
			err = c.renew(ctx, m, w, ref)
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
	record, err := m.Record(ctx, w.ID)
	if err != nil {
		return err
	}
	card, err := c.card(m, w, record)
	if err != nil {
		return err
	}
	card.Channel = c.cfg.Channel
	return c.say(ctx, w.ID, card, ref)
}

// say posts a message and keeps where it is.
func (c *Channel) say(ctx context.Context, wait string, in message, ref *reference) error {
	var posted struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	if err := c.call(ctx, "chat.postMessage", in, &posted); err != nil {
		return err
	}
	ref.Channel, ref.Cards[wait] = posted.Channel, posted.TS
	return nil
}

// errNoCard says that the card to edit is about to be posted.
var errNoCard = errors.New("the card is not posted yet")

// find returns the channel and the ts of the card of a wait; empty where there is none.
func (c *Channel) find(ctx context.Context, m notice.Message, wait string) (channel, ts string, err error) {
	opening, err := m.Opening(ctx, Name, wait)
	if err != nil || opening == nil {
		return "", "", err
	}
	var ref reference
	if len(opening.Reference) > 0 {
		if err := json.Unmarshal(opening.Reference, &ref); err != nil {
			return "", "", fmt.Errorf("%w: reference: %w", notice.ErrPermanent, err)
		}
	}
	if ts = ref.Cards[wait]; ts == "" && opening.State == journal.NoticePending {
		return "", "", errNoCard
	}
	return ref.Channel, ts, nil // none where it was given up
}

// settle edits the card of a wait that has ended, if there is one: it says how, and has no buttons.
func (c *Channel) settle(ctx context.Context, m notice.Message, w journal.NoticeWait) error {
	channel, ts, err := c.find(ctx, m, w.ID)
	if err != nil || ts == "" {
		return err
	}
	how := ended(w)
	text := asks(m, w)
	return c.call(ctx, "chat.update", message{Channel: channel, TS: ts, Text: text + "\n" + how, Blocks: []any{section(text), section(how)}}, nil)
}

// renew edits the card of a wait that something was done to, and says so below it: who looks at the channel
// does not see that a card has changed. A card that has ended meanwhile stays so: whatever ends the wait after
// it was read here the second time edits the card after this.
func (c *Channel) renew(ctx context.Context, m notice.Message, w journal.NoticeWait, ref *reference) error {
	channel, ts, err := c.find(ctx, m, w.ID)
	if err != nil || ts == "" {
		return err
	}
	record, err := m.Record(ctx, w.ID)
	if err != nil || record == nil || record.State != session.WaitOpen {
		return err
	}
	card, err := c.card(m, w, record)
	if err != nil {
		return err
	}
	card.Channel, card.TS = channel, ts
	if err := c.call(ctx, "chat.update", card, nil); err != nil {
		return err
	}
	if record, err = m.Record(ctx, w.ID); err != nil || record == nil {
		return err
	}
	if record.State != session.WaitOpen {
		return c.settle(ctx, m, outbox.Ended(record))
	}
	if m.Notice.Type == journal.NoticeExtended || ref.Cards[w.ID] != "" {
		return nil // nobody has to do anything sooner, or it was said before
	}
	below := message{Channel: channel, Thread: ts, Broadcast: true, Text: acted(m.Notice.Type, w) + ": " + asks(m, w)}
	below.Blocks = []any{section(below.Text)}
	return c.say(ctx, w.ID, below, ref)
}

// message is a request of chat.postMessage or chat.update.
type message struct {
	Channel string `json:"channel"`
	TS      string `json:"ts,omitempty"`
	Text    string `json:"text"`
	Blocks  []any  `json:"blocks,omitempty"`
	// Thread is the ts of the card that a message stands below; Broadcast shows it in the channel too.
	Thread    string `json:"thread_ts,omitempty"`
	Broadcast bool   `json:"reply_broadcast,omitempty"`
	// Nothing that a card links to is fetched for a preview.
	UnfurlLinks bool `json:"unfurl_links"`
	UnfurlMedia bool `json:"unfurl_media"`
	// Mrkdwn would read names as markup.
	Mrkdwn bool `json:"mrkdwn"`
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
