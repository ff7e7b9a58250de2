package app

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/internal/policyfile"
	"github.com/adjourn/adjourn/pkg/session"
)

// DefaultData is where sessions live when nobody says otherwise.
const DefaultData = ".adjourn/adjourn.db"

// ErrInvalidSetting says that a variable of the environment cannot be understood.
var ErrInvalidSetting = errors.New("invalid setting")

// Settings are what the environment says. They are read once, here and nowhere else.
type Settings struct {
	// Data is ADJOURN_DATA: the path of the data file.
	Data string
	// Agent is ADJOURN_AGENT: the agent of a new session when none is named.
	Agent string
	// Model is ADJOURN_MODEL: it overrides the model of every agent.
	Model string
	// StepsPerInvocation is ADJOURN_STEPS_PER_INVOCATION: how many steps one
	// message may drive, 16 by default: here nothing is billed by the invocation,
	// and the entries are the same.
	StepsPerInvocation int
	// Lease is ADJOURN_LEASE: how long a worker that died keeps a step, 20 s by default.
	Lease time.Duration
	// Lab is ADJOURN_LAB: whether a server offers the agents that are there to try
	// things out (see agent.Agent.Trial). Only "true" does.
	Lab bool
	// LabFolder is ADJOURN_LAB_FOLDER: the one folder in which those agents have
	// files; "" leaves it to [FilesBeside].
	LabFolder string
	// GrantKeys is ADJOURN_GRANT_KEYS: the keys that sign links to approvals, id:base64 with
	// commas between. The first signs, all verify.
	GrantKeys string
	// PublicURL is ADJOURN_PUBLIC_URL: where people reach the API; links begin with it.
	PublicURL string
	// SignInURL is ADJOURN_SIGN_IN_URL: where people sign in whose decision needs more than a link.
	SignInURL string
	// TrustData is ADJOURN_TRUST_DATA: whether commands work on a data file that this
	// user has never used, without asking.
	TrustData bool
	// Policy is ADJOURN_POLICY: the program's policy of tools, as the path of its file or as the policy
	// itself, in braces. It holds every task that begins here; nil is none.
	Policy *session.ToolPolicy
	// LogLevel is ADJOURN_LOG: debug, info, warn (the default), error or off.
	LogLevel slog.Level
	// Notices are what is sent outside.
	Notices Notices
}

// LogOff is above every level that is logged.
const LogOff = slog.Level(100)

// shortestLease leaves time for a renewal to be late.
const shortestLease = time.Second

// ReadSettings reads the environment. It reports every mistake at once, each
// with the variable's name; the error wraps [ErrInvalidSetting].
func ReadSettings(env func(string) string) (Settings, error) {
	s := Settings{
		Data: env("ADJOURN_DATA"), Agent: env("ADJOURN_AGENT"), Model: env("ADJOURN_MODEL"), LabFolder: env("ADJOURN_LAB_FOLDER"),
		GrantKeys: env("ADJOURN_GRANT_KEYS"), PublicURL: env("ADJOURN_PUBLIC_URL"), SignInURL: env("ADJOURN_SIGN_IN_URL"),
		StepsPerInvocation: 16, Lease: 20 * time.Second, LogLevel: slog.LevelWarn,
	}
	if s.Data == "" {
		s.Data = DefaultData
	}
	var faults []error
	fault := func(name, value, want string) {
		faults = append(faults, fmt.Errorf("%w: %s=%q: %s", ErrInvalidSetting, name, value, want))
	}
	if _, err := grant.ParseKeys(s.GrantKeys); err != nil {
		// Not what it says: it is a secret.
		faults = append(faults, fmt.Errorf("%w: ADJOURN_GRANT_KEYS: %w", ErrInvalidSetting, err))
	}
	for _, name := range []string{"ADJOURN_PUBLIC_URL", "ADJOURN_SIGN_IN_URL"} {
		if v := env(name); v != "" && grant.CheckURL(v) != nil {
			fault(name, v, "use https://… or http://…, without a user, a query or a fragment")
		}
	}
	if v := env("ADJOURN_STEPS_PER_INVOCATION"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			fault("ADJOURN_STEPS_PER_INVOCATION", v, "use a whole number from 1 on")
		}
		s.StepsPerInvocation = n
	}
	if v := env("ADJOURN_LEASE"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < shortestLease {
			fault("ADJOURN_LEASE", v, "use a duration of at least 1s, such as 20s or 1m")
		}
		s.Lease = d
	}
	switch v := env("ADJOURN_LAB"); v {
	case "", "false":
	case "true":
		s.Lab = true
	default:
		fault("ADJOURN_LAB", v, "use true to offer the agents that are there to try things out, or false")
	}
	if v := env("ADJOURN_POLICY"); v != "" {
		policy, err := policyfile.Setting(v)
		if err != nil {
			faults = append(faults, fmt.Errorf("%w: ADJOURN_POLICY: %w", ErrInvalidSetting, err))
		}
		s.Policy = policy
	}
	if v := env("ADJOURN_TRUST_DATA"); v != "" {
		trust, err := strconv.ParseBool(v)
		if err != nil {
			fault("ADJOURN_TRUST_DATA", v, "use true or false")
		}
		s.TrustData = trust
	}
	if v := env("ADJOURN_LOG"); strings.EqualFold(v, "off") {
		s.LogLevel = LogOff
	} else if v != "" {
		if err := s.LogLevel.UnmarshalText([]byte(v)); err != nil {
			fault("ADJOURN_LOG", v, "use debug, info, warn, error or off")
		}
	}
	s.Notices = readNotices(env, fault)
	return s, errors.Join(faults...)
}
