package answers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/internal/standing"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Standing are the flags of a standing permission.
type Standing struct {
	how     string
	allow   []string
	Preview bool
}

// Register adds the flags.
func (s *Standing) Register(flags *pflag.FlagSet) {
	flags.StringVar(&s.how, "standing", "", "with --approve, `how long` later calls like this one run unasked: session, or a time as 2h")
	flags.StringArrayVar(&s.allow, "allow", nil, "`what` may differ in them: amount<=100, order^=A- (it begins with), region=\"eu\"")
	flags.BoolVar(&s.Preview, "preview", false, "with --standing, only print what it would cover")
}

// Given is the permission that the flags ask for; nil for none. approves says that the answer is a plain yes.
func (s *Standing) Given(approves bool) (*session.Standing, error) {
	switch {
	case s.how == "" && len(s.allow) == 0 && !s.Preview:
		return nil, nil
	case s.how == "":
		return nil, exit.Usagef("--allow and --preview go with --standing")
	case !approves:
		return nil, exit.Usagef("--standing goes with --approve, and without --edit")
	}
	out := &session.Standing{For: s.how}
	for _, text := range s.allow {
		c, err := condition(text)
		if err != nil {
			return nil, err
		}
		out.Conditions = append(out.Conditions, c)
	}
	return out, nil
}

// condition reads one --allow. A field is a name, or a JSON pointer.
func condition(text string) (session.Condition, error) {
	i := strings.IndexByte(text, '=')
	if i < 1 {
		return session.Condition{}, exit.Usagef("--allow %q: use amount<=100, order^=A- or region=\"eu\"", text)
	}
	field, value := text[:i], text[i+1:]
	how := field[len(field)-1]
	if how == '<' || how == '^' {
		field = field[:len(field)-1]
	}
	field = strings.TrimSpace(field)
	if !strings.HasPrefix(field, "/") {
		field = standing.Field(field)
	}
	c := session.Condition{Field: field}
	switch how {
	case '<':
		c.AtMost = json.RawMessage(strings.TrimSpace(value))
	case '^':
		c.Prefix = &value
	default:
		c.Equal = json.RawMessage(strings.TrimSpace(value))
	}
	if c.Prefix == nil && !json.Valid([]byte(value)) {
		return c, exit.Usagef("--allow %q: %q is no JSON; a text goes in double quotes", text, value)
	}
	return c, nil
}

// Previews is what a preview needs of a connection.
type Previews interface {
	PreviewPermission(ctx context.Context, id, wait string, given session.Standing) (session.PermissionPreview, error)
}

// Show says what a permission that goes with an answer would cover, and which earlier calls.
func (s *Standing) Show(ctx context.Context, e Previews, id string, answer client.SubmitRequest, talk func(string, ...any)) (session.PermissionPreview, error) {
	out, err := e.PreviewPermission(ctx, id, answer.WaitID, *answer.Standing)
	if err != nil {
		return out, err
	}
	talk("A standing permission until %s for %s", out.Until.UTC().Format("2006-01-02 15:04 MST"), screen.CleanLine(strings.Join(out.Covers, "; ")))
	covered := 0
	for _, call := range out.Earlier {
		is := "not covered"
		if call.Covered {
			is = "covered"
			covered++
		}
		talk("  earlier call %s, %s: %s", screen.CleanLine(call.Call), is, screen.CleanLine(string(call.Arguments)))
	}
	talk("%s", fmt.Sprintf("It would have covered %d of %d earlier calls in this session.", covered, len(out.Earlier)))
	return out, nil
}
