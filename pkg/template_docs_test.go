package pkg_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

var update = flag.Bool("update", false, "write docs/parameters.md anew")

const parametersPage = "../docs/parameters.md"

// docs/parameters.md is what template.yaml says of its parameters:
//
//	go test ./pkg -run TestTemplateParametersPage -update
func TestTemplateParametersPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../template.yaml")
	require.NoError(t, err)
	var template struct {
		Metadata struct {
			Interface struct {
				Groups []struct {
					Label      map[string]string `yaml:"Label"`
					Parameters []string          `yaml:"Parameters"`
				} `yaml:"ParameterGroups"`
			} `yaml:"AWS::CloudFormation::Interface"`
		} `yaml:"Metadata"`
		Parameters map[string]map[string]yaml.Node `yaml:"Parameters"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &template))

	var page strings.Builder
	page.WriteString(`# Parameters

All parameters of [template.yaml](../template.yaml), which this page is made of (` + "`go test ./pkg -run TestTemplateParametersPage -update`" + `). What nobody sets has its default. ` + "`make deploy Name=value`" + ` sets one and writes it into ` + "`samconfig.toml`" + `;
[deploy.md](deploy.md) says which of them matter.
`)
	described := map[string]bool{}
	for _, group := range template.Metadata.Interface.Groups {
		fmt.Fprintf(&page, "\n## %s\n\n| parameter | default | takes | what it does |\n| --- | --- | --- | --- |\n", group.Label["default"])
		for _, name := range group.Parameters {
			p := template.Parameters[name]
			require.NotEmpty(t, p["Description"].Value, "%s has no description", name)
			described[name] = true
			standard := p["Default"]
			shown := "none"
			if standard.Value != "" {
				shown = "`" + standard.Value + "`"
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", name, shown, takes(p), strings.ReplaceAll(p["Description"].Value, "|", `\|`))
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(template.Parameters)), slices.Collect(maps.Keys(described)), "a parameter without a group")
	if *update {
		require.NoError(t, os.WriteFile(parametersPage, []byte(page.String()), 0o644))
	}
	written, err := os.ReadFile(parametersPage)
	require.NoError(t, err)
	require.Equal(t, page.String(), string(written), "docs/parameters.md says something else: go test ./pkg -run TestTemplateParametersPage -update")
}

// takes says in words what values a parameter may have.
func takes(p map[string]yaml.Node) string {
	value := func(field string) string { return p[field].Value }
	var all []string
	for _, node := range p["AllowedValues"].Content {
		all = append(all, "`"+node.Value+"`")
	}
	low, high := value("MinValue"), value("MaxValue")
	switch {
	case all != nil:
		return strings.Join(all, ", ")
	case value("ConstraintDescription") != "":
		return strings.TrimPrefix(value("ConstraintDescription"), "be ")
	case low != "" && high != "":
		return low + " to " + high
	case low != "":
		return "from " + low
	case value("Type") == "Number":
		return "a number"
	}
	return "text"
}

// deployed says for each resource that CloudFormation makes of the template what its
// provider does with the caller's rights, of what the template asks of it: the part of
// the provider schemas that make test can hold the policy to without them. CI holds it
// to the schemas themselves, by localstack/deployer-policy.
var deployed = map[string][]string{
	"AWS::ApiGatewayV2::Api":            {"apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST", "apigateway:PUT"},
	"AWS::ApiGatewayV2::Authorizer":     {"apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST"},
	"AWS::ApiGatewayV2::Integration":    {"apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST"},
	"AWS::ApiGatewayV2::Route":          {"apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST"},
	"AWS::ApiGatewayV2::Stage":          {"apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST", "apigateway:TagResource", "logs:CreateLogDelivery", "logs:PutResourcePolicy"},
	"AWS::CloudWatch::Alarm":            {"cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm", "cloudwatch:TagResource"},
	"AWS::DynamoDB::Table":              {"dynamodb:CreateTable", "dynamodb:DeleteTable", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:UpdateContinuousBackups", "dynamodb:UpdateTable", "dynamodb:UpdateTimeToLive", "kms:CreateGrant", "kms:DescribeKey"},
	"AWS::Events::Rule":                 {"events:DeleteRule", "events:DescribeRule", "events:PutRule", "events:PutTargets", "events:RemoveTargets"},
	"AWS::IAM::Role":                    {"iam:CreateRole", "iam:DeleteRole", "iam:DeleteRolePolicy", "iam:GetRole", "iam:PutRolePolicy", "iam:TagRole", "iam:UpdateAssumeRolePolicy", "iam:UpdateRole"},
	"AWS::Lambda::EventInvokeConfig":    {"lambda:DeleteFunctionEventInvokeConfig", "lambda:GetFunctionEventInvokeConfig", "lambda:PutFunctionEventInvokeConfig", "lambda:UpdateFunctionEventInvokeConfig"},
	"AWS::Lambda::EventSourceMapping":   {"lambda:CreateEventSourceMapping", "lambda:DeleteEventSourceMapping", "lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping"},
	"AWS::Lambda::Permission":           {"lambda:AddPermission", "lambda:GetPolicy", "lambda:RemovePermission"},
	"AWS::Logs::LogGroup":               {"logs:CreateLogGroup", "logs:DeleteLogGroup", "logs:DescribeLogGroups", "logs:PutRetentionPolicy", "logs:TagResource"},
	"AWS::Logs::MetricFilter":           {"logs:DeleteMetricFilter", "logs:DescribeMetricFilters", "logs:PutMetricFilter"},
	"AWS::S3::Bucket":                   {"s3:CreateBucket", "s3:DeleteBucket", "s3:GetBucketVersioning", "s3:PutBucketPublicAccessBlock", "s3:PutBucketVersioning", "s3:PutEncryptionConfiguration", "s3:PutLifecycleConfiguration"},
	"AWS::S3::BucketPolicy":             {"s3:DeleteBucketPolicy", "s3:GetBucketPolicy", "s3:PutBucketPolicy"},
	"AWS::SQS::Queue":                   {"sqs:CreateQueue", "sqs:DeleteQueue", "sqs:GetQueueAttributes", "sqs:SetQueueAttributes"},
	"AWS::Serverless::Function":         {"iam:PassRole", "lambda:CreateFunction", "lambda:DeleteFunction", "lambda:GetFunction", "lambda:TagResource", "lambda:UpdateFunctionCode", "lambda:UpdateFunctionConfiguration", "secretsmanager:GetSecretValue", "s3:GetObject", "kms:CreateGrant"},
	"AWS::Serverless::Function.Reserve": {"lambda:DeleteFunctionConcurrency", "lambda:PutFunctionConcurrency"},
	"AWS::Serverless::Function.Loop":    {"lambda:GetFunctionRecursionConfig", "lambda:PutFunctionRecursionConfig"},
}

// What a deployer may do is enough for every resource of the template, names none
// but Adjourn's and SAM's, and fits into a policy.
func TestTemplateDeployerPolicy(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/deployer-policy.json")
	require.NoError(t, err)
	var policy struct {
		Version   string
		Statement []struct {
			Sid, Effect      string
			Action, Resource any
			Condition        map[string]map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(raw, &policy))
	words := func(v any) (all []string) {
		if one, ok := v.(string); ok {
			return []string{one}
		}
		for _, word := range v.([]any) {
			all = append(all, word.(string))
		}
		return all
	}
	var allowed []string
	for _, s := range policy.Statement {
		require.Equal(t, "Allow", s.Effect, s.Sid)
		for _, action := range words(s.Action) {
			require.NotContains(t, []string{"*", strings.Split(action, ":")[0] + ":*"}, action, s.Sid)
			allowed = append(allowed, action)
		}
		for _, resource := range words(s.Resource) {
			// These name no resource by the stack: ids are AWS's own, or the right knows none.
			free := []string{"Mappings", "Api", "ApiLogs", "AlarmTopic", "OnlyWithKmsKeyArn"}
			ours := strings.Contains(resource, "adjourn") || strings.Contains(resource, "aws-sam-cli-managed-default") || strings.Contains(resource, ":aws:transform/Serverless-")
			require.True(t, ours || slices.Contains(free, s.Sid), "%s: %s", s.Sid, resource)
		}
		if s.Sid == "PassRoles" {
			require.Equal(t, map[string]map[string]string{"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}, s.Condition)
		}
	}
	compact, err := json.Marshal(json.RawMessage(raw))
	require.NoError(t, err)
	require.LessOrEqual(t, len(compact), 6144, "IAM takes no longer policy")

	for id, r := range readBundle(t).section(t, "Resources") {
		resource := asMap(t, r)
		properties, _ := resource["Properties"].(object)
		kinds := []string{resource["Type"].(string)}
		for property, kind := range map[string]string{
			"ReservedConcurrentExecutions": "AWS::Serverless::Function.Reserve", "RecursiveLoop": "AWS::Serverless::Function.Loop",
			"EventInvokeConfig": "AWS::Lambda::EventInvokeConfig",
		} {
			if properties[property] != nil {
				kinds = append(kinds, kind)
			}
		}
		for _, kind := range kinds {
			actions, known := deployed[kind]
			require.True(t, known, "%s is a %s: say in deployed what its provider does", id, kind)
			for _, action := range actions {
				require.True(t, slices.ContainsFunc(allowed, func(pattern string) bool {
					matched, err := path.Match(pattern, action)
					return err == nil && matched
				}), "%s (%s) needs %s, which docs/deployer-policy.json lacks", id, kind, action)
			}
		}
	}
}
