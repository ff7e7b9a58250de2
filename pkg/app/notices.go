package app

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/notice/slack"
	"github.com/adjourn/adjourn/internal/notice/webhook"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Notices are the settings of what is sent outside.
type Notices struct {
	// Channels is ADJOURN_NOTICES: the names of the channels that notices are written for, with
	// commas between. Empty is those whose settings are there; none means that no notice is written.
	Channels []string
	// URL is ADJOURN_PUBLIC_URL, as in [Settings]: the links in notices begin with it.
	URL string
	// WebhookURL and WebhookSecret are ADJOURN_WEBHOOK_URL and ADJOURN_WEBHOOK_SECRET.
	WebhookURL    string
	WebhookSecret string
	// WebhookArguments is ADJOURN_WEBHOOK_ARGUMENTS: whether arguments of calls are sent as well.
	WebhookArguments bool
	// WebhookLinks is ADJOURN_WEBHOOK_LINKS: whether links are sent by which whoever reads them decides,
	// signed with the keys of ADJOURN_GRANT_KEYS.
	WebhookLinks bool
	// WebhookAllowHTTP and WebhookAllowPrivate are ADJOURN_WEBHOOK_ALLOW_HTTP and
	// ADJOURN_WEBHOOK_ALLOW_PRIVATE: whether notices may go to an address that is not encrypted, or
	// one of this machine or a private network.
	WebhookAllowHTTP, WebhookAllowPrivate bool
	// SlackToken and SlackChannel are ADJOURN_SLACK_TOKEN and ADJOURN_SLACK_CHANNEL: a bot, and the
	// id of the channel it writes to.
	SlackToken, SlackChannel string
	// SlackArguments is ADJOURN_SLACK_ARGUMENTS: whether cards show the arguments of calls. Only a card
	// that does can approve.
	SlackArguments bool
	// SlackSigningSecret and SlackPeople are ADJOURN_SLACK_SIGNING_SECRET and ADJOURN_SLACK_PEOPLE:
	// what Slack signs its requests with, and who its people are here, as JSON or a file of it. With
	// both, buttons decide.
	SlackSigningSecret, SlackPeople string
	// SlackDecidesElsewhere is ADJOURN_SLACK_DECIDES: another program takes what buttons ask.
	SlackDecidesElsewhere bool
	// SlackSignedIn is ADJOURN_SLACK_SIGNED_IN: whoever is known in Slack counts as signed in.
	SlackSignedIn bool
	// SlackTenant is ADJOURN_SLACK_TENANT: whose waits are posted and decided in Slack; empty means
	// [session.DefaultTenant]. Its people are those of this tenant.
	SlackTenant string
	// SlackAPI is ADJOURN_SLACK_API: where Slack's methods are; empty is https://slack.com/api/.
	SlackAPI string

	grantKeys grant.Keys
}

// SlackTakes reports whether this program takes what buttons of cards in Slack ask.
func (n Notices) SlackTakes() bool { return n.SlackSigningSecret != "" && n.SlackPeople != "" }

// SlackDecides reports whether buttons of cards in Slack decide: somebody takes what they ask.
func (n Notices) SlackDecides() bool {
	return n.SlackToken != "" && (n.SlackTakes() || n.SlackDecidesElsewhere)
}

// noticeChannels are the names a program can have.
var noticeChannels = []string{webhook.Name, notice.EventBridge, slack.Name}

// readNotices reads their settings; fault is told each mistake.
func readNotices(env func(string) string, fault func(name, value, want string)) (n Notices) {
	yes := func(name string) bool {
		switch v := env(name); v {
		case "", "false":
		case "true":
			return true
		default:
			fault(name, v, "use true or false")
		}
		return false
	}
	n.WebhookURL, n.WebhookSecret, n.URL = env("ADJOURN_WEBHOOK_URL"), env("ADJOURN_WEBHOOK_SECRET"), strings.TrimRight(env("ADJOURN_PUBLIC_URL"), "/")
	n.WebhookLinks = yes("ADJOURN_WEBHOOK_LINKS")
	if n.WebhookLinks {
		n.grantKeys, _ = grant.ParseKeys(env("ADJOURN_GRANT_KEYS")) // a mistake is told where the keys are read
	}
	n.WebhookArguments, n.WebhookAllowHTTP, n.WebhookAllowPrivate = yes("ADJOURN_WEBHOOK_ARGUMENTS"), yes("ADJOURN_WEBHOOK_ALLOW_HTTP"), yes("ADJOURN_WEBHOOK_ALLOW_PRIVATE")
	switch {
	case !n.WebhookLinks:
	case env("ADJOURN_GRANT_KEYS") == "" || n.URL == "":
		fault("ADJOURN_WEBHOOK_LINKS", "true", "set ADJOURN_GRANT_KEYS and ADJOURN_PUBLIC_URL as well: links are signed with these keys and begin with this address")
	case !strings.HasPrefix(n.URL, "https://") || !strings.HasPrefix(n.WebhookURL, "https://"):
		fault("ADJOURN_WEBHOOK_LINKS", "true", "use it with https:// in ADJOURN_WEBHOOK_URL and ADJOURN_PUBLIC_URL: whoever reads a link can decide")
	}
	if n.WebhookURL != "" {
		n.Channels = append(n.Channels, webhook.Name)
		if err := webhook.CheckURL(n.WebhookURL, n.WebhookAllowHTTP); err != nil {
			fault("ADJOURN_WEBHOOK_URL", "…", err.Error()) // it may hold a secret
		}
		if _, err := webhook.ParseSecret(n.WebhookSecret); err != nil {
			fault("ADJOURN_WEBHOOK_SECRET", "…", err.Error())
		}
	}
	n.SlackArguments, n.SlackDecidesElsewhere, n.SlackSignedIn = yes("ADJOURN_SLACK_ARGUMENTS"), yes("ADJOURN_SLACK_DECIDES"), yes("ADJOURN_SLACK_SIGNED_IN")
	n.SlackToken, n.SlackChannel = env("ADJOURN_SLACK_TOKEN"), env("ADJOURN_SLACK_CHANNEL")
	n.SlackSigningSecret, n.SlackPeople = env("ADJOURN_SLACK_SIGNING_SECRET"), env("ADJOURN_SLACK_PEOPLE")
	n.SlackTenant, n.SlackAPI = env("ADJOURN_SLACK_TENANT"), env("ADJOURN_SLACK_API")
	if !strings.HasPrefix(n.SlackAPI, "https://") && !strings.HasPrefix(n.SlackAPI, "http://127.0.0.1:") && n.SlackAPI != "" {
		fault("ADJOURN_SLACK_API", n.SlackAPI, "use https://…, as https://slack-gov.com/api/")
	}
	if n.SlackTenant != "" && store.ValidateTenant(n.SlackTenant) != nil {
		fault("ADJOURN_SLACK_TENANT", n.SlackTenant, "use 1 to 128 letters, digits, _ or -")
	}
	if n.SlackToken != "" {
		n.Channels = append(n.Channels, slack.Name)
		if n.SlackChannel == "" {
			fault("ADJOURN_SLACK_CHANNEL", "", "use the id of the channel, such as C024BE91L")
		}
	}
	if (n.SlackSigningSecret == "") != (n.SlackPeople == "") {
		fault("ADJOURN_SLACK_PEOPLE", "…", "use it together with ADJOURN_SLACK_SIGNING_SECRET: only known people decide")
	}
	if v := env("ADJOURN_NOTICES"); v != "" {
		n.Channels = slices.DeleteFunc(strings.Split(v, ","), func(name string) bool { return name == "" })
		for _, name := range n.Channels {
			if !slices.Contains(noticeChannels, name) {
				fault("ADJOURN_NOTICES", v, "use names of channels with commas between: "+strings.Join(noticeChannels, ", "))
				break
			}
		}
	}
	return n
}

// Open returns the channels whose settings are there.
func (n Notices) Open(now func() time.Time) ([]notice.Channel, error) {
	var channels []notice.Channel
	if n.WebhookURL != "" {
		c, err := webhook.New(webhook.Config{
			URL: n.WebhookURL, Secret: n.WebhookSecret, Arguments: n.WebhookArguments, Links: n.WebhookLinks,
			AllowHTTP: n.WebhookAllowHTTP, AllowPrivate: n.WebhookAllowPrivate, Now: now,
		})
		if err != nil {
			return nil, fmt.Errorf("%w: webhook: %w", ErrInvalidSetting, err)
		}
		channels = append(channels, c)
	}
	if n.SlackToken != "" {
		channels = append(channels, slack.New(slack.Config{Token: n.SlackToken, Channel: n.SlackChannel, Decides: n.SlackDecides(), SignedIn: n.SlackSignedIn, Arguments: n.SlackArguments, API: n.SlackAPI}))
	}
	return channels, nil
}

// Grants are what links that decide are signed with; nil where none are sent.
func (n Notices) Grants() *notice.Grants {
	if n.grantKeys.IsZero() || n.URL == "" {
		return nil
	}
	return &notice.Grants{Keys: n.grantKeys, URL: n.URL}
}

// Tenants are the channels that are told of one tenant alone, with that tenant.
func (n Notices) Tenants() map[string]string {
	return map[string]string{slack.Name: cmp.Or(n.SlackTenant, session.DefaultTenant)}
}

// Link leads to a session in the API; empty where its address is not known.
func (n Notices) Link(key session.Key, _ string) string {
	if n.URL == "" {
		return ""
	}
	return n.URL + "/sessions/" + url.PathEscape(key.ID)
}
