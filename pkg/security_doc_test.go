package pkg_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rowsOf are the lines of a document's tables whose first or second cell names a
// resource of the template.
func rowsOf(document, id string) []string {
	var rows []string
	for line := range strings.Lines(document) {
		cells := strings.Split(line, "|")
		if len(cells) > 3 && strings.HasPrefix(line, "|") && (strings.Contains(cells[1], "`"+id+"`") || strings.Contains(cells[2], "`"+id+"`")) {
			rows = append(rows, line)
		}
	}
	return rows
}

// TestSecurityDocument: docs/security.md tells of every door there is, by whom it is
// opened, and of nothing else.
func TestSecurityDocument(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	document := string(raw)
	b := readBundle(t)
	for _, kind := range []string{functionType, queueType, tableType, "AWS::S3::Bucket", "AWS::ApiGatewayV2::Api"} {
		for _, id := range b.ids(t, kind) {
			require.NotEmpty(t, rowsOf(document, id), "%s is in no table", id)
		}
	}

	invokers := map[string]string{}
	for _, id := range b.ids(t, "AWS::Lambda::Permission") {
		p := b.properties(t, id, "AWS::Lambda::Permission")
		require.Contains(t, p, "SourceArn", "%s: a service acts for whoever asks it", id)
		invokers[p["FunctionName"].(object)["Ref"].(string)] = p["Principal"].(string)
	}
	_, table, _ := strings.Cut(document, "## Who may invoke what")
	table, _, _ = strings.Cut(table, "\n## ")
	said := ""
	for _, id := range []string{"Start", "Query", "Event", "Step", "Sweep"} {
		rows := rowsOf(table, id)
		require.Len(t, rows, 1, id)
		who := strings.Split(rows[0], "|")[2]
		if strings.TrimSpace(who) == "the same" {
			who = said
		}
		said = who
		principal := invokers[id]
		if principal == "" {
			principal = "nobody"
		}
		require.Contains(t, who, principal, id)
	}
	require.Equal(t, rowsOf(table, "Start"), rowsOf(table, "Resume"))
	require.Equal(t, rowsOf(table, "Start"), rowsOf(table, "Submit"))

	for _, name := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(document, -1) {
		word := name[1]
		_, resource := b.section(t, "Resources")[word]
		_, parameter := b.section(t, "Parameters")[word]
		_, output := b.section(t, "Outputs")[word]
		action := regexp.MustCompile(`^((Add|Create|Delete|Purge|Put|Update)[A-Z]|Scan$|[A-Za-z]+Access$|PUT$|PATCH$)`).MatchString(word)
		require.True(t, resource || parameter || output || action, "`%s` is neither of the template nor an action", word)
	}
}

// The policy to paste is one, and denies what the page says is worth most.
func TestSecurityDocument_its_policy(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	_, policy, found := strings.Cut(string(raw), "```json\n")
	require.True(t, found)
	policy, _, _ = strings.Cut(policy, "```")
	var document struct {
		Version   string
		Statement []struct {
			Sid, Effect string
			Action      []string
			Resource    any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(policy), &document))
	require.Equal(t, "2012-10-17", document.Version)
	denied := map[string]bool{}
	for _, s := range document.Statement {
		require.Equal(t, "Deny", s.Effect, s.Sid)
		require.Regexp(t, "^[A-Za-z]+$", s.Sid)
		require.NotEmpty(t, s.Resource, s.Sid)
		for _, action := range s.Action {
			require.Regexp(t, `^(lambda|dynamodb|s3|sqs|apigateway):[A-Za-z]*\*?$`, action)
			denied[action] = true
		}
	}
	for _, action := range []string{
		"lambda:InvokeFunction", "lambda:UpdateFunctionCode", "lambda:UpdateFunctionConfiguration", "lambda:AddPermission", "lambda:CreateFunctionUrlConfig",
		"lambda:GetFunctionConfiguration", "dynamodb:*", "s3:GetObject*", "s3:PutObject*", "sqs:*", "apigateway:PATCH",
	} {
		require.True(t, denied[action], action)
	}
}
