package work

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/internal/policyfile"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/session"
)

// Rules are the flags by which a command asks something of the task that it begins.
type Rules struct {
	limits    []string
	model     string
	tools     []string
	holdBatch bool
	pause     bool
	cancel    time.Duration
	policy    string
	// given reports whether a flag was given.
	given func(name string) bool
}

// Register adds the flags to those of a command.
func (f *Rules) Register(flags *pflag.FlagSet) {
	f.given = flags.Changed
	flags.StringArrayVar(&f.limits, "limit", nil, "`name=number` of a limit of the task: steps, tokens, activeMillis, costMicros, toolCalls, …; may be given several times")
	flags.StringVar(&f.model, "model", "", "`provider:model` of the task, one that the agent lets callers choose")
	flags.StringArrayVar(&f.tools, "allow-tool", nil, "let the task call this `tool`, and no other one of the agent's but those given so; may be given several times")
	flags.BoolVar(&f.pause, "pause-on-approval", true, "wait for approvals; =false denies what needs one at once")
	flags.DurationVar(&f.cancel, "cancel-after", 0, "cancel the task when it has taken longer than this, waiting included; 0 takes back what was asked before")
	flags.StringVar(&f.policy, "policy", "", "`FILE` (YAML or JSON) that says which calls need an approval beside those whose tools say so (prompt), and which are denied (never)")
	flags.BoolVar(&f.holdBatch, "hold-batch", false, "let no call of a reply run before every approval of it is decided")
}

// Asked returns what was asked.
func (f *Rules) Asked() (session.TaskRules, error) {
	asked := session.TaskRules{Model: f.model, AllowedTools: f.tools}
	if f.given("pause-on-approval") {
		asked.PauseOnApproval = &f.pause
	}
	if f.given("hold-batch") {
		asked.HoldBatch = &f.holdBatch
	}
	if f.given("cancel-after") {
		if asked.CancelAfterMillis = f.cancel.Milliseconds(); f.cancel < 0 || f.cancel > 0 && asked.CancelAfterMillis == 0 {
			return asked, exit.Usagef("--cancel-after %s: it is a millisecond or more, or 0 for never", f.cancel)
		} else if f.cancel > session.MaxCancelAfter {
			return asked, exit.Usagef("--cancel-after %s: it is %s at most", f.cancel, session.MaxCancelAfter)
		} else if f.cancel == 0 {
			asked.CancelAfterMillis = session.Unlimited
		}
	}
	if f.policy != "" {
		var err error
		if asked.Policy, err = readPolicy(f.policy); err != nil {
			return asked, err
		}
	}
	var limits session.Limits
	named := limits.Named()
	for _, given := range f.limits {
		name, value, _ := strings.Cut(given, "=")
		at := slices.IndexFunc(named, func(l session.NamedLimit) bool { return l.Name == name })
		n, err := strconv.ParseInt(value, 10, 64)
		if at >= 0 && value == report.WordNumber {
			return asked, exit.Usagef("--limit %s: %s", given, report.Replace(value, "the limit there"))
		}
		if at < 0 || err != nil || n == 0 || n < session.Unlimited {
			names := make([]string, len(named))
			for i, l := range named {
				names[i] = l.Name
			}
			return asked, exit.Usagef("--limit %q: write it as NAME=NUMBER, above 0 or -1 for none, with one of %s", given, strings.Join(names, ", "))
		}
		*named[at].Value = n
	}
	asked.Limits = session.AskedLimits(limits)
	return asked, nil
}

// readPolicy reads the policy of tools that a flag names.
func readPolicy(path string) (*session.ToolPolicy, error) {
	policy, err := policyfile.Read(path)
	if err != nil {
		return nil, exit.Usagef("--policy: %v", err)
	}
	return policy, nil
}

// Words are the flags that were given, for a command that is printed.
func (f *Rules) Words() (words []string) {
	for _, limit := range f.limits {
		words = append(words, "--limit", limit)
	}
	if f.model != "" {
		words = append(words, "--model", f.model)
	}
	for _, tool := range f.tools {
		words = append(words, "--allow-tool", tool)
	}
	if f.given("pause-on-approval") {
		words = append(words, fmt.Sprintf("--pause-on-approval=%t", f.pause))
	}
	if f.given("hold-batch") {
		words = append(words, fmt.Sprintf("--hold-batch=%t", f.holdBatch))
	}
	if f.policy != "" {
		words = append(words, "--policy", f.policy)
	}
	if f.given("cancel-after") {
		words = append(words, "--cancel-after", f.cancel.String())
	}
	return words
}
