package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func text(s string) *string { return &s }

func fileOf(t *testing.T, content string) *samconfig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "samconfig.toml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	c, err := readConfig(path)
	require.NoError(t, err)
	return c
}

// Every form that SAM takes is read, and becomes the same table.
func TestSamconfig_forms_of_overrides(t *testing.T) {
	t.Parallel()
	want := map[string]string{"JwtIssuer": "https://x.example/ a", "EventTemplate": `{"agent": "clerk"}`, "Model": ""}
	for name, content := range map[string]string{
		"as sam deploy --guided writes it": `[default.deploy.parameters]
parameter_overrides = "JwtIssuer=\"https://x.example/ a\" EventTemplate=\"{\\\"agent\\\": \\\"clerk\\\"}\" Model=\"\""
`,
		"by ParameterKey": `[default.deploy.parameters]
parameter_overrides = 'ParameterKey=JwtIssuer,ParameterValue="https://x.example/ a" ParameterKey=EventTemplate,ParameterValue="{\"agent\": \"clerk\"}" ParameterKey=Model,ParameterValue=""'
`,
		"a list": `[default.deploy.parameters]
parameter_overrides = [
  'JwtIssuer="https://x.example/ a"', # a comment
  'EventTemplate="{\"agent\": \"clerk\"}"',
  'Model=""',
]
`,
		"a table": `[default.deploy.parameters.parameter_overrides]
JwtIssuer = "https://x.example/ a"
EventTemplate = '{"agent": "clerk"}'
Model = ""
`,
		"an inline table": `[default.deploy.parameters]
parameter_overrides = [{JwtIssuer = "https://x.example/ a", EventTemplate = '{"agent": "clerk"}', Model = ""}]
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fileOf(t, "# mine\nversion = 0.1\n\n"+content+"\n[default.build.parameters]\nparallel = false # why\n")
			got, err := c.overrides()
			require.NoError(t, err)
			require.Equal(t, want, got)

			require.NoError(t, c.setOverrides(map[string]*string{"Model": text("openai:x"), "MaxWait": text("0")}))
			require.NoError(t, c.write())
			again, err := readConfig(c.path)
			require.NoError(t, err)
			got, err = again.overrides()
			require.NoError(t, err)
			require.Equal(t, map[string]string{"JwtIssuer": want["JwtIssuer"], "EventTemplate": want["EventTemplate"], "Model": "openai:x", "MaxWait": "0"}, got)
			for _, kept := range []string{"# mine\n", "[default.build.parameters]\nparallel = false # why\n", "[" + overrideTable + "]\n", "Model = \"openai:x\"\n"} {
				require.Contains(t, again.text, kept)
			}
		})
	}
}

func TestSamconfig_changes_nothing_else(t *testing.T) {
	t.Parallel()
	const before = `# ours
version = 0.1

[default.global.parameters]
stack_name = "adjourn" # the name

[default.deploy.parameters]
tags = [
  "a=b", # [not a header]
]
region = "eu-west-1"

[default.deploy.parameters.parameter_overrides]
# why it is 0
MaxWait = 0
Chain = "on"

[other]
x = """
[default.deploy.parameters.parameter_overrides]
Chain = "off"
"""
`
	c := fileOf(t, before)
	require.NoError(t, c.setWord("stack_name", "two"))
	require.NoError(t, c.setWord("region", "eu-west-2"))
	require.NoError(t, c.setOverrides(map[string]*string{"Chain": nil, "MaxWait": text("5"), "Model": text(`a"b'c\d` + "\t")}))
	require.Equal(t, `# ours
version = 0.1

[default.global.parameters]
stack_name = "two"

[default.deploy.parameters]
tags = [
  "a=b", # [not a header]
]
region = "eu-west-2"

[default.deploy.parameters.parameter_overrides]
# why it is 0
MaxWait = "5"
Model = "a\"b'c\\d\u0009"

[other]
x = """
[default.deploy.parameters.parameter_overrides]
Chain = "off"
"""
`, c.text)
	got, err := c.overrides()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"MaxWait": "5", "Model": `a"b'c\d` + "\t"}, got)
}

func TestSamconfig_is_made_where_there_is_none(t *testing.T) {
	t.Parallel()
	c, err := readConfig(filepath.Join(t.TempDir(), "samconfig.toml"))
	require.NoError(t, err)
	require.NoError(t, c.setWord("region", "eu-west-1"))
	require.NoError(t, c.setOverrides(map[string]*string{"JwtIssuer": text("https://a")}))
	require.NoError(t, c.write())
	raw, err := os.ReadFile(c.path)
	require.NoError(t, err)
	require.Equal(t, "version = 0.1\n\n[default.global.parameters]\nregion = \"eu-west-1\"\n\n["+overrideTable+"]\nJwtIssuer = \"https://a\"\n", string(raw))
}

func TestSamconfig_refuses_what_it_does_not_know(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "samconfig.toml")
	require.NoError(t, os.WriteFile(path, []byte("version = \n"), 0o600))
	_, err := readConfig(path)
	require.ErrorContains(t, err, path)

	_, err = fileOf(t, "[default.deploy.parameters]\nparameter_overrides = \"file://mine.yaml\"\n").overrides()
	require.ErrorContains(t, err, "move its parameters into the table ["+overrideTable+"]")
	_, err = fileOf(t, "[default.deploy.parameters.parameter_overrides]\nA = [1]\n").overrides()
	require.ErrorContains(t, err, "A is neither a text nor a number")

	inline := fileOf(t, "default = {global = {parameters = {stack_name = \"a\"}}}\n")
	before := inline.text
	require.ErrorContains(t, inline.setWord("stack_name", "b"), "give the table ["+globalTable+"] lines of its own")
	require.Equal(t, before, inline.text)
}
