package serverless

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/session"
)

// Settings are what the environment of a Lambda function says, read once by [ReadSettings].
type Settings struct {
	// Settings that every wiring has. One message drives one step here and logs
	// begin at info, where nothing else is said.
	app.Settings
	// Table is ADJOURN_TABLE: the name of the state table; required.
	Table string
	// Bucket is ADJOURN_BUCKET: where values over 256 KB are; required.
	Bucket string
	// QueueURL is ADJOURN_QUEUE_URL: the queue of wakes; required.
	QueueURL string
	// DeadLettersURL is ADJOURN_DEAD_LETTERS_URL: the queue of wakes that were
	// received too often. Only the sweep reads it, and needs it.
	DeadLettersURL string
	// NoticeQueueURL is ADJOURN_NOTICE_QUEUE_URL: the queue of what sends notices; who writes
	// notices needs it.
	NoticeQueueURL string
	// NoticeBus is ADJOURN_NOTICE_BUS: the event bus that notices are put onto.
	NoticeBus string
	// APIID is ADJOURN_API_ID: the HTTP API whose requests are answered; the
	// functions behind it need it.
	APIID string
	// TenantClaim is ADJOURN_TENANT_CLAIM: the claim of a caller's JWT that holds
	// the tenant; "tenant" by default.
	TenantClaim string
	// RolesClaim is ADJOURN_ROLES_CLAIM: the claim of a caller's JWT that holds the
	// caller's roles; without it nobody has any.
	RolesClaim string
	// FixedTenant is ADJOURN_FIXED_TENANT: the tenant of every caller with a token,
	// where tokens have no such claim.
	FixedTenant string
	// IAMTenant is ADJOURN_IAM_TENANT: the tenant of callers that IAM let in. Where
	// it is set they alone are let in; where it is empty they are refused.
	IAMTenant string
	// AllowUnauthenticated is ADJOURN_ALLOW_UNAUTHENTICATED: only "true" lets
	// callers in that nobody has verified.
	AllowUnauthenticated bool
	// MaxWait is ADJOURN_MAX_WAIT: how long a request may wait for its session, 0
	// to 20 s; 5 s by default. Each that waits holds an invocation all the while.
	MaxWait time.Duration
	// EventTemplate is ADJOURN_EVENT_TEMPLATE: makes the input of a session out of
	// an event; empty takes plain invocations only.
	EventTemplate string
	// EventTenant is ADJOURN_EVENT_TENANT: whose sessions events start; "default"
	// by default.
	EventTenant string
}

// ReadSettings reads the environment. It reports every mistake at once, each
// with the variable's name; the error wraps [app.ErrInvalidSetting].
func ReadSettings(env func(string) string) (Settings, error) {
	or := func(name, otherwise string) string {
		if v := env(name); v != "" {
			return v
		}
		return otherwise
	}
	shared, err := app.ReadSettings(func(name string) string {
		switch name {
		case "ADJOURN_STEPS_PER_INVOCATION":
			return or(name, "1")
		case "ADJOURN_LOG":
			return or(name, "info")
		}
		return env(name)
	})
	s := Settings{
		Settings: shared,
		Table:    env("ADJOURN_TABLE"), Bucket: env("ADJOURN_BUCKET"),
		QueueURL: env("ADJOURN_QUEUE_URL"), DeadLettersURL: env("ADJOURN_DEAD_LETTERS_URL"),
		APIID: env("ADJOURN_API_ID"), TenantClaim: or("ADJOURN_TENANT_CLAIM", "tenant"), RolesClaim: env("ADJOURN_ROLES_CLAIM"), FixedTenant: env("ADJOURN_FIXED_TENANT"), IAMTenant: env("ADJOURN_IAM_TENANT"),
		EventTemplate: env("ADJOURN_EVENT_TEMPLATE"), EventTenant: or("ADJOURN_EVENT_TENANT", session.DefaultTenant),
		MaxWait: 5 * time.Second,
	}
	s.NoticeQueueURL, s.NoticeBus = env("ADJOURN_NOTICE_QUEUE_URL"), env("ADJOURN_NOTICE_BUS")
	faults := []error{err}
	fault := func(name, value, want string) {
		faults = append(faults, fmt.Errorf("%w: %s=%q: %s", app.ErrInvalidSetting, name, value, want))
	}
	if s.Table == "" {
		fault("ADJOURN_TABLE", "", "name the DynamoDB table that holds the sessions")
	}
	if s.Bucket == "" {
		fault("ADJOURN_BUCKET", "", "name the S3 bucket that holds large values")
	}
	if !queueURL(s.QueueURL) {
		fault("ADJOURN_QUEUE_URL", s.QueueURL, "use the URL of the SQS queue that brings the steps, https://…")
	}
	if s.DeadLettersURL != "" && !queueURL(s.DeadLettersURL) {
		fault("ADJOURN_DEAD_LETTERS_URL", s.DeadLettersURL, "use the URL of the SQS queue of dead letters, https://…")
	}
	switch {
	case s.NoticeQueueURL != "" && !queueURL(s.NoticeQueueURL):
		fault("ADJOURN_NOTICE_QUEUE_URL", s.NoticeQueueURL, "use the URL of the SQS queue of notices, https://…")
	case s.NoticeQueueURL == "" && env("ADJOURN_NOTICES") != "" && len(s.Notices.Channels) > 0:
		fault("ADJOURN_NOTICE_QUEUE_URL", "", "use the URL of the SQS queue of notices, https://…, as ADJOURN_NOTICES is set")
	}
	if v := env("ADJOURN_ALLOW_UNAUTHENTICATED"); v != "" {
		// A word that is misspelt must not open the door, nor leave anyone in doubt whether it did.
		allow, err := strconv.ParseBool(v)
		if err != nil || v != "true" && v != "false" {
			fault("ADJOURN_ALLOW_UNAUTHENTICATED", v, "use true to let everybody in, or false")
		}
		s.AllowUnauthenticated = allow && v == "true"
	}
	if v := env("ADJOURN_MAX_WAIT"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 || d > longestWait || d%time.Second != 0 {
			fault("ADJOURN_MAX_WAIT", v, "use whole seconds, from 0s to 20s")
		}
		s.MaxWait = d
	}
	tenant := func(name, value string) {
		if value != "" && (session.Key{Tenant: value, ID: "x"}).Validate() != nil {
			fault(name, value, "use 1 to 128 letters, digits, _ or -")
		}
	}
	tenant("ADJOURN_FIXED_TENANT", s.FixedTenant)
	tenant("ADJOURN_IAM_TENANT", s.IAMTenant)
	tenant("ADJOURN_EVENT_TENANT", s.EventTenant)
	// Who says two things about callers may mean either.
	switch {
	case s.FixedTenant != "" && env("ADJOURN_TENANT_CLAIM") != "":
		fault("ADJOURN_FIXED_TENANT", s.FixedTenant, "leave it out, or ADJOURN_TENANT_CLAIM: the tenant is fixed or the token's")
	case s.FixedTenant != "" && s.IAMTenant != "":
		fault("ADJOURN_FIXED_TENANT", s.FixedTenant, "leave it out, or ADJOURN_IAM_TENANT: callers come with tokens or sign with IAM")
	}
	if s.AllowUnauthenticated && (s.FixedTenant != "" || s.IAMTenant != "") {
		fault("ADJOURN_ALLOW_UNAUTHENTICATED", "true", "leave it out, or ADJOURN_FIXED_TENANT and ADJOURN_IAM_TENANT: they are for callers that somebody has verified")
	}
	return s, errors.Join(faults...)
}

// longestWait leaves room before the gateway gives up, after 30 s.
const longestWait = 20 * time.Second

func queueURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(u.Path) > 1
}
