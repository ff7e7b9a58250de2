package pkg_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// What each function may do, to which resource. A role that lacks one of these
// fails the smoke run on an account that holds it to its role; one that has more
// fails here.
func TestTemplateRoles(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	find := []string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"} // what an index says is looked up
	repair := append(slices.Clone(find), "dynamodb:PutItem", "dynamodb:UpdateItem")
	write := []string{"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"}
	blobs := []string{"s3:GetObject", "s3:PutObject"}
	send := []string{"sqs:SendMessage"}
	consume := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}
	want := map[string]map[string][]string{
		"Start":  {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Steps.Arn": send},
		"Event":  {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Steps.Arn": send, "FailedEvents.Arn": send},
		"Step":   {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Steps.Arn": append(slices.Clone(send), consume...)},
		"Resume": {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Steps.Arn": send},
		"Submit": {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Steps.Arn": send},
		"Query": {
			"State.Arn": find, "${Blobs.Arn}/*": {"s3:GetObject"},
			"${State.Arn}/index/sessions": {"dynamodb:Query"}, "${State.Arn}/index/inbox": {"dynamodb:Query"},
			"${State.Arn}/index/inboxByAgent": {"dynamodb:Query"}, "${State.Arn}/index/inboxByKind": {"dynamodb:Query"},
			"${State.Arn}/index/inboxByTool": {"dynamodb:Query"},
		},
		"Sweep": {
			"State.Arn": repair, "${Blobs.Arn}/*": blobs, "Steps.Arn": send, "DeadLetters.Arn": consume,
			"${State.Arn}/index/due": {"dynamodb:Query"},
		},
	}
	var roles []string
	for _, id := range functionIDs {
		want[id][id+"Logs.Arn"] = []string{"logs:CreateLogStream", "logs:PutLogEvents"}
		roles = append(roles, id+"Role")
		p := b.properties(t, id+"Role", "AWS::IAM::Role")
		require.Equal(t, object{"Version": "2012-10-17", "Statement": []any{
			object{"Effect": "Allow", "Principal": object{"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
		}}, p["AssumeRolePolicyDocument"], id)
		policies := asList(t, p["Policies"])
		require.Len(t, policies, 1, id)
		document := asMap(t, asMap(t, policies[0])["PolicyDocument"])
		require.Equal(t, "2012-10-17", document["Version"])
		got := map[string][]string{}
		for _, s := range asList(t, document["Statement"]) {
			s := asMap(t, s)
			require.Equal(t, "Allow", s["Effect"])
			require.Len(t, s, 3, "%s: effect, actions and resources", id)
			for _, r := range texts(t, s["Resource"]) {
				require.NotContains(t, got, r, "%s: one statement for each resource", id)
				got[r] = texts(t, s["Action"])
			}
		}
		require.Equal(t, want[id], got, "%s: what it may do", id)
	}
	require.Equal(t, roles, b.ids(t, "AWS::IAM::Role"))

	// Each index is asked by somebody.
	for _, i := range dynamostore.StateSchema().Indexes {
		arn := "${State.Arn}/index/" + i.Name
		require.True(t, want["Query"][arn] != nil || want["Sweep"][arn] != nil, arn)
	}
}

// texts are the strings of a string, a list, a GetAtt or a Sub.
func texts(t *testing.T, v any) []string {
	t.Helper()
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, texts(t, e)...)
		}
		return all
	case map[string]any:
		for _, fn := range []string{"Fn::GetAtt", "Fn::Sub", "Ref"} {
			if text, ok := v[fn].(string); ok {
				return []string{text}
			}
		}
	}
	require.Fail(t, "not a text", "%v", v)
	return nil
}

// Whatever else is added: nothing may be allowed wholesale.
func TestTemplateAllowsNothingWholesale(t *testing.T) {
	t.Parallel()
	walk(map[string]any(readBundle(t)), "", func(path string, v any) {
		require.NotRegexp(t, "/(ManagedPolicyArns|PermissionsBoundary)$", path, "managed policies have wildcards")
		s, ok := v.(map[string]any)
		if !ok || s["Effect"] != "Allow" || s["Principal"] != nil {
			return
		}
		for _, action := range texts(t, s["Action"]) {
			require.NotContains(t, action, "*", path)
			require.NotContains(t, action, ":Scan", path)
		}
		for _, resource := range texts(t, s["Resource"]) {
			require.NotEqual(t, "*", resource, path)
			if resource != "${Blobs.Arn}/*" { // the objects of one bucket
				require.NotContains(t, resource, "*", path)
			}
		}
		require.NotContains(t, s, "NotAction", path)
		require.NotContains(t, s, "NotResource", path)
	})
}

func TestTemplateKey(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Equal(t, []string{"UseKey"}, b.ids(t, "AWS::IAM::Policy"))
	require.Equal(t, "HasKmsKey", b.resource(t, "UseKey", "AWS::IAM::Policy")["Condition"])
	p := b.properties(t, "UseKey", "AWS::IAM::Policy")
	var roles []any
	for _, id := range functionIDs {
		roles = append(roles, ref(id+"Role"))
	}
	require.ElementsMatch(t, roles, p["Roles"])
	require.Equal(t, object{"Version": "2012-10-17", "Statement": []any{object{
		"Effect": "Allow", "Action": []any{"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:DescribeKey"}, "Resource": ref("KmsKeyArn"),
	}}}, p["PolicyDocument"])
}

func TestTemplateBlobs(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	r := b.resource(t, "Blobs", "AWS::S3::Bucket")
	require.Equal(t, "Retain", r["DeletionPolicy"])
	require.Equal(t, "Retain", r["UpdateReplacePolicy"])
	require.Equal(t, object{
		"BucketEncryption": object{"ServerSideEncryptionConfiguration": []any{object{
			"BucketKeyEnabled": true,
			"ServerSideEncryptionByDefault": object{
				"SSEAlgorithm": when("HasKmsKey", "aws:kms", "AES256"), "KMSMasterKeyID": when("HasKmsKey", ref("KmsKeyArn"), noValue),
			},
		}}},
		"OwnershipControls": object{"Rules": []any{object{"ObjectOwnership": "BucketOwnerEnforced"}}},
		"PublicAccessBlockConfiguration": object{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		},
		// Aborted uploads and nothing else: entries refer to objects for ever.
		"LifecycleConfiguration": object{"Rules": []any{object{
			"Id": "aborted-uploads", "Status": "Enabled", "AbortIncompleteMultipartUpload": object{"DaysAfterInitiation": 1},
		}}},
	}, r["Properties"])
	require.Equal(t, object{"Bucket": ref("Blobs"), "PolicyDocument": object{"Version": "2012-10-17", "Statement": []any{object{
		"Sid": "OnlyOverTLS", "Effect": "Deny", "Principal": "*", "Action": "s3:*",
		"Resource":  []any{getAtt("Blobs.Arn"), sub("${Blobs.Arn}/*")},
		"Condition": object{"Bool": object{"aws:SecureTransport": "false"}},
	}}}}, b.properties(t, "BlobsOverTLS", "AWS::S3::BucketPolicy"))
}

func TestTemplateLogs(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	want := map[string]string{"ApiLogs": "/aws/apigateway/${AWS::StackName}"}
	for _, id := range functionIDs {
		want[id+"Logs"] = "/aws/lambda/${AWS::StackName}-" + strings.ToLower(id)
	}
	groups := b.ids(t, "AWS::Logs::LogGroup")
	require.Len(t, groups, len(want))
	for _, id := range groups {
		require.Equal(t, object{
			"LogGroupName": sub(want[id]), "RetentionInDays": ref("LogRetentionDays"),
		}, b.properties(t, id, "AWS::Logs::LogGroup"), id)
	}
}

func TestTemplateAlarms(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	type alarm struct {
		metric, stat string
		of           object
		period       int
		every, need  int // of so many periods so many
		over         int // below, if the metric is to be there
	}
	queue := func(id string) object { return object{"Name": "QueueName", "Value": getAtt(id + ".QueueName")} }
	function := func(id string) object { return object{"Name": "FunctionName", "Value": ref(id)} }
	want := map[string]alarm{
		"DeadLettersWait": {"AWS/SQS ApproximateNumberOfMessagesVisible", "Maximum", queue("DeadLetters"), 60, 1, 1, 0},
		"DeadLettersCome": {"AWS/SQS NumberOfMessagesReceived", "Sum", queue("DeadLetters"), 300, 1, 1, 0},
		"EventsFailed":    {"AWS/SQS ApproximateNumberOfMessagesVisible", "Maximum", queue("FailedEvents"), 300, 1, 1, 0},
		"StepsWaitLong":   {"AWS/SQS ApproximateAgeOfOldestMessage", "Maximum", queue("Steps"), 300, 1, 1, 1800},
		"SweepSilent":     {"AWS/Lambda Invocations", "Sum", function("Sweep"), 300, 2, 2, 1},
		"ApiFails":        {"AWS/ApiGateway 5xx", "Sum", object{"Name": "ApiId", "Value": ref("Api")}, 300, 3, 2, 0},
	}
	for _, id := range functionIDs {
		want[id+"Errors"] = alarm{"AWS/Lambda Errors", "Sum", function(id), 300, 3, 2, 0}
		want[id+"Throttles"] = alarm{"AWS/Lambda Throttles", "Sum", function(id), 300, 3, 2, 0}
		want[id+"LoopsCut"] = alarm{"AWS/Lambda RecursiveInvocationsDropped", "Sum", function(id), 300, 1, 1, 0}
	}
	require.Len(t, b.ids(t, "AWS::CloudWatch::Alarm"), len(want))
	for id, a := range want {
		p := b.properties(t, id, "AWS::CloudWatch::Alarm")
		require.NotEmpty(t, p["AlarmDescription"], id)
		delete(p, "AlarmDescription")
		namespace, metric, _ := strings.Cut(a.metric, " ")
		compare, missing := "GreaterThanThreshold", "notBreaching"
		if id == "SweepSilent" {
			compare, missing = "LessThanThreshold", "breaching"
		}
		require.Equal(t, object{
			"AlarmActions": when("HasAlarmTopic", []any{ref("AlarmTopicArn")}, noValue),
			"Namespace":    namespace, "MetricName": metric, "Dimensions": []any{a.of}, "Statistic": a.stat,
			"Period": a.period, "EvaluationPeriods": a.every, "DatapointsToAlarm": a.need,
			"ComparisonOperator": compare, "Threshold": a.over, "TreatMissingData": missing,
		}, p, id)
	}
}

// Every parameter does something, and what has a condition is asked for by one.
func TestTemplateParameters(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	raw, err := json.Marshal(map[string]any{"r": b["Resources"], "c": b["Conditions"], "g": b["Globals"]})
	require.NoError(t, err)
	var groups []string
	for _, g := range asList(t, asMap(t, asMap(t, b["Metadata"])["AWS::CloudFormation::Interface"])["ParameterGroups"]) {
		groups = append(groups, texts(t, asMap(t, g)["Parameters"])...)
	}
	optional := map[string]string{
		"Model": "", "ModelSecret": "HasModelSecret", "OpenAIBaseUrl": "", "EventTemplate": "", "EventSources": "HasEventSources",
		"EventDetailTypes": "HasEventDetailTypes", "KmsKeyArn": "HasKmsKey", "AlarmTopicArn": "HasAlarmTopic",
		"ReservedConcurrency": "HasReservedConcurrency", "MaxReadUnits": "HasReadCap", "MaxWriteUnits": "HasWriteCap",
	}
	conditions := b.section(t, "Conditions")
	for name, v := range b.section(t, "Parameters") {
		p := asMap(t, v)
		require.NotEmpty(t, p["Description"], name)
		require.Contains(t, p, "Default", "%s: a first deployment asks for JwtIssuer and JwtAudience alone", name)
		if !strings.Contains(string(raw), `"Ref":"`+name+`"`) && !strings.Contains(string(raw), "${"+name+"}") {
			t.Errorf("nothing reads %s", name)
		}
		require.Contains(t, groups, name)
		condition, ok := optional[name]
		if !ok {
			continue
		}
		nothing := ""
		if p["Type"] == "Number" {
			nothing = "0"
		}
		if condition != "" {
			require.Equal(t, not(equals(ref(name), nothing)), conditions[condition], condition)
		}
	}
	require.Len(t, groups, len(b.section(t, "Parameters")))
	require.Equal(t, equals(ref("DeletionProtection"), "true"), conditions["Protected"])
	require.Equal(t, object{"Fn::Or": []any{object{"Condition": "HasReadCap"}, object{"Condition": "HasWriteCap"}}}, conditions["HasCap"])
	for name := range conditions {
		require.Regexp(t, `"(Fn::If":\[|Condition":)"`+name+`"`, string(raw), "nothing asks for %s", name)
	}
	require.Equal(t, 5, asMap(t, b.section(t, "Parameters")["MaxConcurrency"])["Default"], "a young account runs ten")
	require.Equal(t, 1, asMap(t, b.section(t, "Parameters")["StepsPerInvocation"])["Default"])
	require.Equal(t, 5, asMap(t, b.section(t, "Parameters")["MaxWait"])["Default"])
	require.Equal(t, "tenant", asMap(t, b.section(t, "Parameters")["TenantClaim"])["Default"])
}

// What a parameter takes, beside any text.
func TestTemplateBounds(t *testing.T) {
	t.Parallel()
	want := object{
		"AllowUnauthenticated": object{"AllowedValues": []any{"true", "false"}},
		"ApiMemory":            object{"MinValue": 128, "MaxValue": 10240},
		"Architecture":         object{"AllowedValues": []any{"arm64", "x86_64"}},
		"Chain":                object{"AllowedValues": []any{"on", "off"}},
		"DeletionProtection":   object{"AllowedValues": []any{"true", "false"}},
		"EventTenant":          object{"AllowedPattern": "[A-Za-z0-9_-]{1,128}"},
		"LogLevel":             object{"AllowedValues": []any{"debug", "info", "warn", "error", "off"}},
		"LogRetentionDays":     object{"AllowedValues": []any{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731}},
		"MaxConcurrency":       object{"MinValue": 2, "MaxValue": 1000}, // Lambda's own
		"MaxReadUnits":         object{"MinValue": 0},
		"MaxWait":              object{"MinValue": 0, "MaxValue": 20}, // what ADJOURN_MAX_WAIT takes
		"MaxWriteUnits":        object{"MinValue": 0},
		"ReservedConcurrency":  object{"MinValue": 0},
		"StepMemory":           object{"MinValue": 128, "MaxValue": 10240},
		"StepTimeout":          object{"AllowedValues": []any{"120", "300", "600", "900"}},
		"StepsPerInvocation":   object{"MinValue": 1, "MaxValue": 100},
		"TenantClaim":          object{"MinLength": 1},
		"ThrottleBurst":        object{"MinValue": 1},
		"ThrottleRate":         object{"MinValue": 1},
	}
	got := object{}
	for name, v := range readBundle(t).section(t, "Parameters") {
		p := asMap(t, v)
		require.Contains(t, []any{"String", "Number"}, p["Type"], name)
		for _, described := range []string{"Type", "Default", "Description"} {
			delete(p, described)
		}
		if len(p) > 0 {
			got[name] = p
		}
	}
	require.Equal(t, want, got)
}

// What the smoke run and people find a deployment by.
func TestTemplateOutputs(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	want := object{
		"ApiUrl": sub("https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}"), "ApiId": ref("Api"),
		"StepsUrl": ref("Steps"), "DeadLettersUrl": ref("DeadLetters"), "FailedEventsUrl": ref("FailedEvents"),
		"StateTable": ref("State"), "LiveTable": ref("Live"), "BlobBucket": ref("Blobs"),
		"ChainMapping": ref("StepByQueue"),
	}
	for _, id := range functionIDs {
		want[id+"Function"] = ref(id)
	}
	got := object{}
	for name, o := range b.section(t, "Outputs") {
		got[name] = asMap(t, o)["Value"]
	}
	require.Equal(t, want, got)
}

// Whoever an alarm wakes finds it in the docs, by its name or, of those each
// function has, by what follows the function's.
func TestTemplateAlarmsAreExplained(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	var docs strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		docs.Write(text)
	}
	for id, r := range readBundle(t).section(t, "Resources") {
		if asMap(t, r)["Type"] != "AWS::CloudWatch::Alarm" {
			continue
		}
		for _, function := range functionIDs {
			if kind, ok := strings.CutPrefix(id, function); ok && !slices.Contains([]string{"SweepSilent", "StepsWaitLong", "EventsFailed"}, id) {
				id = "…" + kind
			}
		}
		require.Contains(t, docs.String(), "`"+id+"`")
	}
}

func TestTemplateDeployment(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Equal(t, "AWS::Serverless-2016-10-31", b["Transform"])
	require.Equal(t, "2010-09-09", b["AWSTemplateFormatVersion"])
	config, err := os.ReadFile("../samconfig.toml")
	require.NoError(t, err)
	for _, line := range []string{
		"version = 0.1", `stack_name = "adjourn"`, "build_in_source = true", "lint = true", `capabilities = "CAPABILITY_IAM"`,
		"resolve_s3 = true", "confirm_changeset = true", "fail_on_empty_changeset = false",
	} {
		require.Contains(t, string(config), "\n"+line+"\n")
	}
}
