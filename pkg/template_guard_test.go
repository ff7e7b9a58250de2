package pkg_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
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
	remove := []string{"dynamodb:DeleteItem", "dynamodb:BatchWriteItem"} // what a deleted session has
	blobsToo := append(slices.Clone(blobs), "s3:DeleteObject")
	list := []string{"s3:ListBucket"} // tells what is gone from what is denied
	send := []string{"sqs:SendMessage"}
	consume := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}
	want := map[string]map[string][]string{
		"Start":  {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Blobs.Arn": list, "Steps.Arn": send},
		"Event":  {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Blobs.Arn": list, "Steps.Arn": send, "FailedEvents.Arn": send},
		"Step":   {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Blobs.Arn": list, "Steps.Arn": append(slices.Clone(send), consume...), "Notices.Arn": send},
		"Notice": {"State.Arn": {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"}, "${Blobs.Arn}/*": {"s3:GetObject"}, "Blobs.Arn": list, "Notices.Arn": consume},
		"Resume": {"State.Arn": slices.Concat(write, remove), "${Blobs.Arn}/*": blobsToo, "Blobs.Arn": list, "Steps.Arn": send, "Notices.Arn": send},
		"Submit": {"State.Arn": write, "${Blobs.Arn}/*": blobs, "Blobs.Arn": list, "Steps.Arn": send, "Notices.Arn": send},
		"Query": {
			"State.Arn": find, "${Blobs.Arn}/*": {"s3:GetObject"}, "Blobs.Arn": list,
			"${State.Arn}/index/sessions": {"dynamodb:Query"}, "${State.Arn}/index/inbox": {"dynamodb:Query"},
			"${State.Arn}/index/inboxByAgent": {"dynamodb:Query"}, "${State.Arn}/index/inboxByKind": {"dynamodb:Query"},
			"${State.Arn}/index/inboxByTool": {"dynamodb:Query"},
		},
		"Sweep": {
			"State.Arn": slices.Concat(repair, remove), "${Blobs.Arn}/*": blobsToo, "Blobs.Arn": list, "Steps.Arn": send, "Notices.Arn": send, "DeadLetters.Arn": consume,
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
		if id == "Notice" {
			require.Equal(t, when("HasNoticeBus", object{"PolicyName": "bus", "PolicyDocument": object{"Version": "2012-10-17", "Statement": []any{
				object{"Effect": "Allow", "Action": "events:PutEvents", "Resource": sub("arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/${NoticeBus}")},
			}}}, noValue), policies[3])
			policies = policies[:3]
		}
		require.Len(t, policies, 3, "%s: its own, and those of keys", id)
		document := asMap(t, asMap(t, policies[0])["PolicyDocument"])
		require.Equal(t, "2012-10-17", document["Version"])
		got := map[string][]string{}
		for _, s := range asList(t, document["Statement"]) {
			s := asMap(t, s)
			require.Equal(t, "Allow", s["Effect"])
			require.Len(t, s, 3, "%s: effect, actions and resources", id)
			for _, r := range restorable(t, s["Resource"]) {
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

// restorable are the names of resources; one of the table must also be one of the
// table that was restored in its place, with the same index.
func restorable(t *testing.T, v any) []string {
	t.Helper()
	if list, ok := v.([]any); ok {
		var all []string
		for _, e := range list {
			all = append(all, restorable(t, e)...)
		}
		return all
	}
	m, ok := v.(map[string]any)
	if !ok || m["Fn::If"] == nil {
		require.NotContains(t, texts(t, v)[0], "State", "RestoredTable stands in its place")
		return texts(t, v)
	}
	either := asList(t, m["Fn::If"])
	require.Equal(t, "Restored", either[0])
	name := texts(t, either[2])
	_, index, ok := strings.Cut(strings.Replace(name[0], "${State.Arn}", "State.Arn", 1), "State.Arn")
	require.True(t, ok, name)
	require.Equal(t, sub("arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}"+index), either[1])
	return name
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
		walk(s["Resource"], path, func(path string, v any) {
			if resource, ok := v.(string); ok && resource != "${Blobs.Arn}/*" { // the objects of one bucket
				require.NotContains(t, resource, "*", path)
			}
		})
		require.NotContains(t, s, "NotAction", path)
		require.NotContains(t, s, "NotResource", path)
	})
}

// Whoever reads or writes may use the key, and read with those that it was before.
// The rights are in the roles: a policy of its own could come after its users.
func TestTemplateKey(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Empty(t, b.ids(t, "AWS::IAM::Policy"))
	policy := func(name string, actions, resource any) object {
		return object{"PolicyName": name, "PolicyDocument": object{"Version": "2012-10-17", "Statement": []any{
			object{"Effect": "Allow", "Action": actions, "Resource": resource},
		}}}
	}
	for _, id := range functionIDs {
		require.Equal(t, []any{
			when("HasKmsKey", policy("key", []any{"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:DescribeKey"}, ref("KmsKeyArn")), noValue),
			when("HadKmsKeys", policy("previous-keys", "kms:Decrypt", object{"Fn::Split": []any{",", ref("PreviousKmsKeyArns")}}), noValue),
		}, asList(t, b.properties(t, id+"Role", "AWS::IAM::Role")["Policies"])[1:3], id)
	}
}

func TestTemplateBlobs(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	r := b.resource(t, "Blobs", "AWS::S3::Bucket")
	require.Equal(t, "RetainExceptOnCreate", r["DeletionPolicy"])
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
		// No object that is there ends by itself: entries refer to them for ever. What was
		// deleted is kept a day longer than the table can be put back to.
		"VersioningConfiguration": object{"Status": "Enabled"},
		"LifecycleConfiguration": object{"Rules": []any{
			object{"Id": "aborted-uploads", "Status": "Enabled", "AbortIncompleteMultipartUpload": object{"DaysAfterInitiation": 1}},
			object{
				"Id": "deleted", "Status": "Enabled", "NoncurrentVersionExpiration": object{"NoncurrentDays": 36},
				"ExpiredObjectDeleteMarker": true,
			},
		}},
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
	want := map[string]string{"ApiLogs": "/aws/vendedlogs/apigateway/${AWS::StackName}"}
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
		every, need  int // of so many five minutes so many, where nothing else is said
		over         any // below, if the metric is to be there
	}
	queue := func(id string) object { return object{"Name": "QueueName", "Value": getAtt(id + ".QueueName")} }
	function := func(id string) object { return object{"Name": "FunctionName", "Value": ref(id)} }
	want := map[string]alarm{
		"DeadLettersWait": {"AWS/SQS ApproximateNumberOfMessagesVisible", "Maximum", queue("DeadLetters"), 3, 3, 0},
		"DeadLettersCome": {"AWS/SQS NumberOfMessagesReceived", "Sum", queue("DeadLetters"), 1, 1, 0},
		"TasksFailed":     {"adjourn TasksFailed", "Sum", nil, 1, 1, 0},
		"NoticesGivenUp":  {"adjourn NoticesGivenUp", "Sum", nil, 1, 1, 0},
		"NoticeErrors":    {"AWS/Lambda Errors", "Sum", function("Notice"), 3, 2, 0},
		"EventsFailed":    {"AWS/SQS ApproximateNumberOfMessagesVisible", "Maximum", queue("FailedEvents"), 1, 1, 0},
		"EventsLost":      {"AWS/Lambda DestinationDeliveryFailures", "Sum", function("Event"), 1, 1, 0},
		"StepsWaitLong":   {"AWS/SQS ApproximateAgeOfOldestMessage", "Maximum", queue("Steps"), 1, 1, 1800},
		"StepsSlow":       {"AWS/Lambda Duration", "Maximum", function("Step"), 3, 2, object{"Fn::FindInMap": []any{"StepTimeouts", ref("StepTimeout"), "Slow"}}},
		"StepErrors":      {"AWS/Lambda Errors", "Sum", function("Step"), 3, 2, 0},
		"StepThrottles":   {"AWS/Lambda Throttles", "Sum", function("Step"), 3, 2, 0},
		"SweepSilent":     {"AWS/Lambda Invocations", "Sum", function("Sweep"), 10, 10, 1}, // of one minute
		"SweepErrors":     {"AWS/Lambda Errors", "Sum", function("Sweep"), 3, 2, 0},
		"SweepLoopsCut":   {"AWS/Lambda RecursiveInvocationsDropped", "Sum", function("Sweep"), 1, 1, 0},
		"ApiFails":        {"AWS/ApiGateway 5xx", "Sum", object{"Name": "ApiId", "Value": ref("Api")}, 3, 2, 0},
	}
	topic := when("HasAlarmTopic", []any{ref("AlarmTopicArn")}, noValue)
	require.Len(t, b.ids(t, "AWS::CloudWatch::Alarm"), len(want)+1)
	for id, a := range want {
		p := b.properties(t, id, "AWS::CloudWatch::Alarm")
		require.NotEmpty(t, p["AlarmDescription"], id)
		delete(p, "AlarmDescription")
		namespace, metric, _ := strings.Cut(a.metric, " ")
		wanted := object{
			"AlarmActions": topic, "OKActions": topic, "Namespace": namespace, "MetricName": metric, "Statistic": a.stat,
			"Period": 300, "EvaluationPeriods": a.every, "DatapointsToAlarm": a.need,
			"ComparisonOperator": "GreaterThanThreshold", "Threshold": a.over, "TreatMissingData": "notBreaching",
		}
		if a.of != nil {
			wanted["Dimensions"] = []any{a.of}
		}
		switch id {
		case "TasksFailed", "NoticesGivenUp":
			wanted["Namespace"] = sub("adjourn/${AWS::StackName}")
		case "SweepSilent": // no data is the alarm, and where a new alarm begins
			wanted["ComparisonOperator"], wanted["TreatMissingData"], wanted["InsufficientDataActions"] = "LessThanThreshold", "missing", topic
			wanted["Period"] = 60
		}
		require.Equal(t, wanted, p, id)
	}
	throttles := b.properties(t, "TableThrottles", "AWS::CloudWatch::Alarm")
	require.Equal(t, topic, throttles["AlarmActions"])
	require.Equal(t, topic, throttles["OKActions"])
	require.Equal(t, []any{object{
		"Id": "throttled", "Period": 300, "ReturnData": true, "Expression": object{"Fn::Sub": []any{
			`SELECT SUM(ThrottledRequests) FROM SCHEMA("AWS/DynamoDB", Operation, TableName) WHERE TableName = '${Table}'`,
			object{"Table": when("Restored", ref("RestoredTable"), ref("State"))},
		}},
	}}, throttles["Metrics"])

	filters := slices.DeleteFunc(b.ids(t, "AWS::Logs::MetricFilter"), func(id string) bool { return strings.HasSuffix(id, "WaitsOver") })
	require.Equal(t, []string{"NoticeNoticesGivenUp", "StepTasksFailed", "SweepNoticesGivenUp", "SweepTasksFailed"}, filters, "the functions that fail tasks, or give notices up")
	for _, id := range filters {
		metric, line := "TasksFailed", "task failed" // what pkg/app/serverless logs
		if strings.HasSuffix(id, "NoticesGivenUp") {
			metric, line = "NoticesGivenUp", "notice given up" // and internal/notice, and the sweep
		}
		require.Equal(t, object{
			"LogGroupName": ref(strings.TrimSuffix(id, metric) + "Logs"), "FilterPattern": `{ $.msg = "` + line + `" }`,
			"MetricTransformations": []any{object{"MetricNamespace": sub("adjourn/${AWS::StackName}"), "MetricName": metric, "MetricValue": "1"}},
		}, b.properties(t, id, "AWS::Logs::MetricFilter"))
	}
	for _, function := range []string{"Step", "Resume", "Sweep"} { // whose entries take answers in
		require.Equal(t, object{
			"LogGroupName": ref(function + "Logs"), "FilterPattern": `{ $.msg = "wait over" }`, // what pkg/runtime logs
			"MetricTransformations": []any{object{
				"MetricNamespace": sub("adjourn/${AWS::StackName}"), "MetricName": "WaitMillis", "MetricValue": "$.millis", "Unit": "Milliseconds",
				"Dimensions": []any{object{"Key": "Tool", "Value": "$.tool"}, object{"Key": "Kind", "Value": "$.kind"}, object{"Key": "Outcome", "Value": "$.outcome"}},
			}},
		}, b.properties(t, function+"WaitsOver", "AWS::Logs::MetricFilter"))
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
		"FixedTenant": "HasFixedTenant", "IamTenant": "HasIamTenant", "Model": "", "ToolPolicy": "", "ModelSecret": "HasModelSecret", "GrantSecret": "HasGrantSecret", "PublicUrl": "HasPublicUrl", "SignInUrl": "", "OpenAIBaseUrl": "", "EventTemplate": "", "EventSources": "HasEventSources",
		"EventDetailTypes": "HasEventDetailTypes", "KmsKeyArn": "HasKmsKey", "AlarmTopicArn": "HasAlarmTopic",
		"PreviousKmsKeyArns": "HadKmsKeys", "RestoredTable": "Restored", "MaxReadUnits": "HasReadCap", "MaxWriteUnits": "HasWriteCap",
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
	require.Equal(t, "1", asMap(t, b.section(t, "Parameters")["StepsPerInvocation"])["Default"])
	require.Equal(t, "5", asMap(t, b.section(t, "Parameters")["MaxWait"])["Default"])
	require.Equal(t, "tenant", asMap(t, b.section(t, "Parameters")["TenantClaim"])["Default"])
}

// What a parameter takes, beside any text.
func TestTemplateBounds(t *testing.T) {
	t.Parallel()
	key := `arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+`
	want := object{
		"AlarmTopicArn":        object{"MaxLength": 512, "AllowedPattern": "(arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+)?"},
		"AllowUnauthenticated": object{"AllowedValues": []any{"true", "false"}},
		"ApiMemory":            object{"MinValue": 128, "MaxValue": 10240},
		"Architecture":         object{"AllowedValues": []any{"arm64", "x86_64"}},
		"Chain":                object{"AllowedValues": []any{"on", "off"}},
		"DeletionProtection":   object{"AllowedValues": []any{"true", "false"}},
		"EventBus":             object{"MaxLength": 512, "AllowedPattern": `^[A-Za-z0-9._/:-]+$`},
		"EventDetailTypes":     object{"MaxLength": 1024, "AllowedPattern": `^$|^[^\s,]([^,]*[^\s,])?(,[^\s,]([^,]*[^\s,])?)*$`}, // with the sources within the 2,048 of a pattern
		"EventSources":         object{"MaxLength": 768, "AllowedPattern": `^$|^[^\s,]+(,[^\s,]+)*$`},
		"EventTemplate":        object{"MaxLength": 2048, "AllowedPattern": `^$|^\s*\{[\s\S]*"input"[\s\S]*\}\s*$`}, // within the 4 KB of an environment
		"EventTenant":          object{"MaxLength": 128, "AllowedPattern": `^[A-Za-z0-9_-]+$`},
		"FixedTenant":          object{"MaxLength": 128, "AllowedPattern": `^[A-Za-z0-9_-]*$`},
		"IamTenant":            object{"MaxLength": 128, "AllowedPattern": `^[A-Za-z0-9_-]*$`},
		"JwtAudience":          object{"MaxLength": 2048, "AllowedPattern": `([^\s,]+(,[^\s,]+)*)?`},
		"JwtIssuer":            object{"MaxLength": 1024, "AllowedPattern": `((https://|http://127[.]0[.]0[.]1:)[^\s?#]+)?`},
		"KmsKeyArn":            object{"MaxLength": 256, "AllowedPattern": "(" + key + ")?"}, // no alias: a role cannot name one
		"LogLevel":             object{"AllowedValues": []any{"debug", "info", "warn", "error", "off"}},
		"LogRetentionDays":     object{"AllowedValues": []any{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731}},
		"MaxConcurrency":       object{"MinValue": 2, "MaxValue": 1000}, // Lambda's own
		"MaxReadUnits":         object{"MinValue": 0},
		"Lab":                  object{"AllowedValues": []any{"true", "false"}},
		"MaxWait":              object{"MaxLength": 2, "AllowedPattern": `^([0-9]|1[0-9]|20)$`}, // what ADJOURN_MAX_WAIT takes
		"MaxWriteUnits":        object{"MinValue": 0},
		"Model":                object{"MaxLength": 256, "AllowedPattern": `([a-z0-9-]+:\S+)?`},
		"GrantSecret":          object{"MaxLength": 512, "AllowedPattern": "(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:)?[A-Za-z0-9/_+=.@-]*"},
		"PublicUrl":            object{"MaxLength": 256, "AllowedPattern": `(https://[^\s?#'"<>@]+)?`}, // what grant.CheckURL takes
		"SignInUrl":            object{"MaxLength": 256, "AllowedPattern": `(https://[^\s?#'"<>@]+)?`},
		"ModelSecret":          object{"MaxLength": 512, "AllowedPattern": "(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:)?[A-Za-z0-9/_+=.@-]*"},
		"NoticeBus":            object{"MaxLength": 256, "AllowedPattern": `^[A-Za-z0-9._/-]*$`},
		"SlackSecret":          object{"MaxLength": 512, "AllowedPattern": "(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:)?[A-Za-z0-9/_+=.@-]*"},
		"SlackChannel":         object{"MaxLength": 32, "AllowedPattern": "^[A-Z0-9]*$"},
		"SlackPeople":          object{"MaxLength": 1200, "AllowedPattern": `^$|^\{ *"[A-Z0-9]+/[A-Z0-9]+" *: *"[^\s"\\]+( [^\s"\\]+)*"( *, *"[A-Z0-9]+/[A-Z0-9]+" *: *"[^\s"\\]+( [^\s"\\]+)*")* *\}$`},
		"SlackArguments":       object{"AllowedValues": []any{"true", "false"}},
		"SlackSignedIn":        object{"AllowedValues": []any{"true", "false"}},
		"SlackTenant":          object{"MaxLength": 128, "AllowedPattern": "^[A-Za-z0-9_-]+$"},
		"WebhookArguments":     object{"AllowedValues": []any{"true", "false"}},
		"WebhookSecret":        object{"MaxLength": 512, "AllowedPattern": "(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:)?[A-Za-z0-9/_+=.@-]*"},
		"WebhookUrl":           object{"MaxLength": 1024, "AllowedPattern": `(https://[^\s@]+)?`},
		"OpenAIBaseUrl":        object{"MaxLength": 512},
		"PreviousKmsKeyArns":   object{"MaxLength": 1024, "AllowedPattern": "(" + key + "(," + key + ")*)?"},
		"ReserveConcurrency":   object{"AllowedValues": []any{"true", "false"}},
		"RestoredTable":        object{"MaxLength": 255, "AllowedPattern": "([A-Za-z0-9_.-]{3,255})?"},
		"RolesClaim":           object{"MaxLength": 128, "AllowedPattern": `^\S*$`},
		"StepMemory":           object{"MinValue": 128, "MaxValue": 10240},
		"StepTimeout":          object{"AllowedValues": []any{"120", "300", "600", "900"}},
		"StepsPerInvocation":   object{"MaxLength": 3, "AllowedPattern": `^([1-9][0-9]?|100)$`},
		"ToolPolicy":           object{"MaxLength": 1024, "AllowedPattern": `^$|^\s*\{\s*("tools"\s*:\s*\{\s*"[^"\\]+"\s*:\s*"(auto|prompt|never)"(\s*,\s*"[^"\\]+"\s*:\s*"(auto|prompt|never)")*\s*\}|"default"\s*:\s*"(auto|prompt|never)"|"never"\s*:\s*"(reject|pause)")(\s*,\s*("tools"\s*:\s*\{\s*"[^"\\]+"\s*:\s*"(auto|prompt|never)"(\s*,\s*"[^"\\]+"\s*:\s*"(auto|prompt|never)")*\s*\}|"default"\s*:\s*"(auto|prompt|never)"|"never"\s*:\s*"(reject|pause)"))*\s*\}\s*$`},
		"TenantClaim":          object{"MaxLength": 128, "AllowedPattern": `^\S+$`},
		"ThrottleBurst":        object{"MinValue": 1},
		"ThrottleRate":         object{"MinValue": 1},
	}
	got := object{}
	for name, v := range readBundle(t).section(t, "Parameters") {
		p := asMap(t, v)
		require.Contains(t, []any{"String", "Number"}, p["Type"], name)
		require.Equal(t, p["AllowedPattern"] != nil, p["ConstraintDescription"] != nil, "%s: what a pattern asks for is said in words", name)
		for _, described := range []string{"Type", "Default", "Description", "ConstraintDescription"} {
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
		"StateTable": when("Restored", ref("RestoredTable"), ref("State")), "LiveTable": ref("Live"), "BlobBucket": ref("Blobs"),
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

// Whoever an alarm wakes finds it in the document.
func TestTemplateAlarmsAreExplained(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../docs/operate.md")
	require.NoError(t, err)
	alarms := readBundle(t).ids(t, "AWS::CloudWatch::Alarm")
	for _, id := range alarms {
		require.Contains(t, string(document), "| `"+id+"` |")
	}
	require.Contains(t, string(document), strconv.Itoa(len(alarms))+" alarms")
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
