package policyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/policyfile"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestSetting: what a person writes is read whole, or refused: nothing that is misspelt, missing or cut off
// is a policy that lets more run.
func TestSetting(t *testing.T) {
	t.Parallel()
	whole := &session.ToolPolicy{Tools: map[string]session.ToolMode{"refund": session.ToolPrompt, "rm": session.ToolNever}, Default: session.ToolAuto, Never: session.NeverPause}
	for name, c := range map[string]struct {
		text  string
		want  *session.ToolPolicy
		fault string
	}{
		"YAML":             {text: "tools:\n  refund: prompt\n  rm: never\ndefault: auto\nnever: pause\n", want: whole},
		"JSON":             {text: `{"tools": {"refund": "prompt", "rm": "never"}, "default": "auto", "never": "pause"}`, want: whole},
		"flow":             {text: "{tools: {refund: prompt, rm: never}, default: auto, never: pause}", want: whole},
		"default alone":    {text: "{default: prompt}", want: &session.ToolPolicy{Default: session.ToolPrompt}},
		"empty":            {text: "", fault: "says nothing"},
		"blank":            {text: " \n", fault: "says nothing"},
		"no words":         {text: "{}", fault: "says nothing"},
		"null":             {text: "null", fault: "says nothing"},
		"a null mode":      {text: "{tools: {refund: null}}", fault: `"" is no mode of tool "refund"`},
		"false":            {text: "{tools: {refund: false}}", fault: "is no mode"},
		"another word":     {text: "{tools: {refund: ask}}", fault: `"ask" is no mode`},
		"another case":     {text: "{tools: {refund: Never}}", fault: "is no mode"},
		"another default":  {text: "{default: yes}", fault: "is no default"},
		"another never":    {text: "{default: never, never: ask}", fault: "reject or pause"},
		"another field":    {text: "{tool: {refund: never}}", fault: "tool"},
		"a list":           {text: "[refund]", fault: "["},
		"cut off":          {text: "{tools: {refund: never", fault: ""},
		"a name twice":     {text: "{tools: {refund: never, refund: auto}}", fault: "refund"},
		"a field twice":    {text: "{default: never, default: auto}", fault: "default"},
		"a second policy":  {text: "default: never\n---\ndefault: auto\n", fault: ""},
		"more than enough": {text: "{default: prompt} #" + strings.Repeat("x", 64<<10), fault: "is the most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "policy.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			settings := []string{path}
			if strings.HasPrefix(c.text, "{") {
				settings = append(settings, c.text)
			}
			for _, setting := range settings {
				got, err := policyfile.Setting(setting)
				if c.want == nil {
					require.Error(t, err)
					require.Nil(t, got)
					if c.fault != "[" {
						require.ErrorContains(t, err, c.fault)
					}
					continue
				}
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			}
		})
	}
	_, err := policyfile.Setting(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = policyfile.Setting(t.TempDir())
	require.Error(t, err)
}
