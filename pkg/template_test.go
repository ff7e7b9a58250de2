package pkg_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/llm/openai"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// These tests hold template.yaml to the code it deploys and to the rules of
// docs/design. They need neither SAM nor AWS.

// functionIDs are the functions' logical ids.
var functionIDs = []string{"Event", "Notice", "Query", "Resume", "Start", "Step", "Submit", "Sweep"}

const (
	functionType = "AWS::Serverless::Function"
	tableType    = "AWS::DynamoDB::Table"
	queueType    = "AWS::SQS::Queue"
	mappingType  = "AWS::Lambda::EventSourceMapping"
	ruleType     = "AWS::Events::Rule"
)

func idOf(f httpapi.Function) string {
	return strings.ToUpper(string(f)[:1]) + string(f)[1:]
}

// openRoutes are the routes without an authorizer: the document is public, of a link the token is what
// lets somebody in, and of Slack its signature. httpapi holds the same list against a request without a caller.
var openRoutes = []string{"GET /openapi.json", "GET /a/{token}", "POST /a/{token}", "POST /slack/interactions"}

func TestTemplateRoutes(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	got := map[string]string{}
	for _, id := range b.ids(t, "AWS::ApiGatewayV2::Route") {
		p := b.properties(t, id, "AWS::ApiGatewayV2::Route")
		key := p["RouteKey"].(string)
		require.Equal(t, ref("Api"), p["ApiId"], id)
		target := asMap(t, p["Target"])["Fn::Sub"].(string)
		integration := strings.TrimSuffix(strings.TrimPrefix(target, "integrations/${"), "}")
		got[key] = strings.TrimSuffix(asMap(t, b.properties(t, integration, "AWS::ApiGatewayV2::Integration")["IntegrationUri"])["Fn::GetAtt"].(string), ".Arn")
		if slices.Contains(openRoutes, key) {
			require.Equal(t, "NONE", p["AuthorizationType"], "%s needs no caller", key)
			require.NotContains(t, p, "AuthorizerId")
			continue
		}
		require.Equal(t, when("Authenticated", when("HasIamTenant", "AWS_IAM", "JWT"), "NONE"), p["AuthorizationType"], id)
		require.Equal(t, when("ByToken", ref("Authorizer"), noValue), p["AuthorizerId"], id)
	}

	want, paths := map[string]string{}, map[string]bool{}
	for _, r := range httpapi.Routes() {
		want[r.Method+" "+r.Path] = idOf(r.Function)
		paths[strings.ToLower(r.Method)+" "+r.Path] = true
	}
	require.Equal(t, want, got, "template.yaml and httpapi.Routes differ")

	raw, err := os.ReadFile("httpapi/openapi.yaml")
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &document))
	written := map[string]bool{}
	for path, item := range document.Paths {
		for method, operation := range item {
			if slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				written[method+" "+path] = true
				open, _ := asMap(t, operation)["security"].([]any)
				require.Equal(t, slices.Contains(openRoutes, strings.ToUpper(method)+" "+path), open != nil && len(open) == 0, "%s %s: is it public?", method, path)
			}
		}
	}
	require.Equal(t, paths, written, "openapi.yaml and httpapi.Routes differ")
}

func TestTemplateIntegrations(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	var ids, permissions []string
	for _, f := range httpapi.Functions() {
		id := idOf(f)
		ids, permissions = append(ids, id+"Integration"), append(permissions, id+"ByApi")
		require.Equal(t, object{
			"ApiId": ref("Api"), "IntegrationType": "AWS_PROXY", "IntegrationUri": getAtt(id + ".Arn"),
			"PayloadFormatVersion": "2.0", "TimeoutInMillis": 30000,
		}, b.properties(t, id+"Integration", "AWS::ApiGatewayV2::Integration"))
		require.Equal(t, object{
			"FunctionName": ref(id), "Action": "lambda:InvokeFunction", "Principal": "apigateway.amazonaws.com",
			"SourceArn": sub("arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*"),
		}, b.properties(t, id+"ByApi", "AWS::Lambda::Permission"))
	}
	require.ElementsMatch(t, ids, b.ids(t, "AWS::ApiGatewayV2::Integration"))
	permissions = append(permissions, "SweepBySchedule", "EventByRule")
	require.ElementsMatch(t, permissions, b.ids(t, "AWS::Lambda::Permission"), "who may call functions")
}

func TestTemplateAPI(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Equal(t, "HTTP", b.properties(t, "Api", "AWS::ApiGatewayV2::Api")["ProtocolType"])

	stage := b.properties(t, "Stage", "AWS::ApiGatewayV2::Stage")
	require.Equal(t, ref("Api"), stage["ApiId"])
	require.Equal(t, "$default", stage["StageName"], "a named stage would be in every path")
	require.Equal(t, true, stage["AutoDeploy"])
	require.Equal(t, object{"ThrottlingRateLimit": ref("ThrottleRate"), "ThrottlingBurstLimit": ref("ThrottleBurst")}, stage["DefaultRouteSettings"])
	require.Equal(t, object{"GET /openapi.json": object{"ThrottlingRateLimit": 1, "ThrottlingBurstLimit": 5}}, stage["RouteSettings"])
	require.Equal(t, []any{"RouteGetOpenAPI"}, b.resource(t, "Stage", "AWS::ApiGatewayV2::Stage")["DependsOn"], "its route has settings")
	logs := asMap(t, stage["AccessLogSettings"])
	require.Equal(t, getAtt("ApiLogs.Arn"), logs["DestinationArn"])
	for _, word := range []string{"$context.path", "$context.http", "$context.protocol", "$request", "rawPath"} {
		require.NotContains(t, logs["Format"], word, "the path of a link is a secret")
	}
	for _, word := range []string{"$context.requestId", "$context.status", "$context.routeKey", "$context.identity.sourceIp", "$context.authorizer.error", "$context.authorizer.claims.sub", "$context.identity.userArn"} {
		require.Contains(t, logs["Format"], word)
	}

	require.Equal(t, "ByToken", b.resource(t, "Authorizer", "AWS::ApiGatewayV2::Authorizer")["Condition"])
	require.Equal(t, object{
		"ApiId": ref("Api"), "Name": "jwt", "AuthorizerType": "JWT", "IdentitySource": []any{"$request.header.Authorization"},
		"JwtConfiguration": object{"Issuer": ref("JwtIssuer"), "Audience": object{"Fn::Split": []any{",", ref("JwtAudience")}}},
	}, b.properties(t, "Authorizer", "AWS::ApiGatewayV2::Authorizer"))
}

func TestTemplateTables(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Equal(t, []string{"Live", "State"}, b.ids(t, tableType))
	// A table's cap is none of its indexes'.
	caps := when("HasCap", object{
		"MaxReadRequestUnits":  when("HasReadCap", ref("MaxReadUnits"), noValue),
		"MaxWriteRequestUnits": when("HasWriteCap", ref("MaxWriteUnits"), noValue),
	}, noValue)
	for id, schema := range map[string]dynamostore.Schema{"State": dynamostore.StateSchema(), "Live": dynamostore.LiveSchema()} {
		p := b.properties(t, id, tableType)
		keys := func(partition, sort string) []any {
			return []any{object{"AttributeName": partition, "KeyType": "HASH"}, object{"AttributeName": sort, "KeyType": "RANGE"}}
		}
		names := []string{schema.Partition, schema.Sort}
		var indexes any
		for _, i := range schema.Indexes {
			names = append(names, i.Partition, i.Sort)
			projection := object{"ProjectionType": "KEYS_ONLY"}
			if len(i.Include) > 0 {
				var beside []any
				for _, name := range i.Include {
					beside = append(beside, name)
				}
				projection = object{"ProjectionType": "INCLUDE", "NonKeyAttributes": beside}
			}
			list, _ := indexes.([]any)
			indexes = append(list, object{"IndexName": i.Name, "KeySchema": keys(i.Partition, i.Sort), "Projection": projection, "OnDemandThroughput": caps})
		}
		require.Equal(t, keys(schema.Partition, schema.Sort), p["KeySchema"], id)
		var attributes []any
		slices.Sort(names)
		for _, name := range slices.Compact(names) { // indexes may share one
			attributes = append(attributes, object{"AttributeName": name, "AttributeType": "S"})
		}
		require.ElementsMatch(t, attributes, p["AttributeDefinitions"], id)
		require.Equal(t, indexes, p["GlobalSecondaryIndexes"], id)
		require.NotContains(t, p, "LocalSecondaryIndexes", "they would cap a session at 10 GB")
		require.Equal(t, object{"AttributeName": schema.TTL, "Enabled": true}, p["TimeToLiveSpecification"], id)
		require.Equal(t, "PAY_PER_REQUEST", p["BillingMode"], id)
		require.Equal(t, when("HasKmsKey", object{"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": ref("KmsKeyArn")}, noValue), p["SSESpecification"], id)
		require.NotContains(t, p, "TableName", "a name would stand in the way of a stack deployed anew beside a table that was kept")
	}

	state := b.resource(t, "State", tableType)
	require.Equal(t, "RetainExceptOnCreate", state["DeletionPolicy"], "what a failed creation leaves is empty")
	require.Equal(t, "Retain", state["UpdateReplacePolicy"])
	p := b.properties(t, "State", tableType)
	require.Equal(t, object{"PointInTimeRecoveryEnabled": true}, p["PointInTimeRecoverySpecification"])
	require.Equal(t, when("Protected", true, false), p["DeletionProtectionEnabled"])
	require.Equal(t, "false", asMap(t, b.section(t, "Parameters")["DeletionProtection"])["Default"], "a protected table holds up the rollback of a creation")
	require.Equal(t, caps, p["OnDemandThroughput"])
	require.NotContains(t, b.properties(t, "Live", tableType), "PointInTimeRecoverySpecification", "deltas are not worth keeping")
}

func TestTemplateChain(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Equal(t, []string{"DeadLetters", "FailedEvents", "Notices", "Steps"}, b.ids(t, queueType))
	for _, id := range b.ids(t, queueType) {
		p := b.properties(t, id, queueType)
		require.Equal(t, when("HasKmsKey", noValue, true), p["SqsManagedSseEnabled"], id)
		require.Equal(t, when("HasKmsKey", ref("KmsKeyArn"), noValue), p["KmsMasterKeyId"], id)
		days := 14
		if id == "Steps" {
			days = 7 // a dead letter brings its age along, and is to be kept for some time
		}
		hours := days * 24
		if id == "Notices" {
			hours = 1 // by then the sweep has sent another
		}
		require.Equal(t, hours*60*60, p["MessageRetentionPeriod"], id)
	}

	// Visibility is the function's timeout and a minute, whichever was chosen.
	timeouts := b.section(t, "Mappings")["StepTimeouts"]
	var chosen []any
	for timeout, row := range asMap(t, timeouts) {
		seconds, err := strconv.Atoi(timeout)
		require.NoError(t, err)
		require.Equal(t, object{"Visibility": seconds + 60, "Slow": seconds * 900}, row)
		chosen = append(chosen, timeout)
	}
	parameter := asMap(t, b.section(t, "Parameters")["StepTimeout"])
	require.ElementsMatch(t, chosen, parameter["AllowedValues"])
	require.Equal(t, "300", parameter["Default"])
	require.Equal(t, ref("StepTimeout"), b.properties(t, "Step", functionType)["Timeout"])
	steps := b.properties(t, "Steps", queueType)
	require.Equal(t, object{"Fn::FindInMap": []any{"StepTimeouts", ref("StepTimeout"), "Visibility"}}, steps["VisibilityTimeout"])
	require.Equal(t, object{"deadLetterTargetArn": getAtt("DeadLetters.Arn"), "maxReceiveCount": 10}, steps["RedrivePolicy"])
	require.Equal(t, 20, steps["ReceiveMessageWaitTimeSeconds"])
	require.NotContains(t, steps, "FifoQueue")

	sweep := b.properties(t, "Sweep", functionType)["Timeout"].(int)
	require.Less(t, sweep, 60, "one sweep ends before the next begins")
	require.Equal(t, sweep+60, b.properties(t, "DeadLetters", queueType)["VisibilityTimeout"])

	require.Equal(t, 30+60, b.properties(t, "Notices", queueType)["VisibilityTimeout"], "the function's timeout and a minute")
	require.NotContains(t, b.properties(t, "Notice", functionType), "Timeout", "that of all")
	require.NotContains(t, b.properties(t, "Notices", queueType), "RedrivePolicy", "the sweep has them sent again")
	require.Equal(t, []string{"NoticeByQueue", "StepByQueue", "SweepByDeadLetters"}, b.ids(t, mappingType))
	require.Equal(t, object{
		"FunctionName": ref("Notice"), "EventSourceArn": getAtt("Notices.Arn"), "BatchSize": 1,
		"Enabled":               when("HasNotices", true, false), // a queue that is polled costs something at rest
		"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		"ScalingConfig":         object{"MaximumConcurrency": 2},
	}, b.properties(t, "NoticeByQueue", mappingType))
	require.Equal(t, object{
		"FunctionName": ref("Step"), "EventSourceArn": getAtt("Steps.Arn"), "BatchSize": 1,
		"Enabled":               when("ChainOn", true, false), // the kill switch
		"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		"ScalingConfig":         object{"MaximumConcurrency": ref("MaxConcurrency")},
	}, b.properties(t, "StepByQueue", mappingType))
	require.Equal(t, object{
		"FunctionName": ref("Sweep"), "EventSourceArn": getAtt("DeadLetters.Arn"), "BatchSize": 1,
		"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		"ScalingConfig":         object{"MaximumConcurrency": 2},
	}, b.properties(t, "SweepByDeadLetters", mappingType))
	chain := asMap(t, b.section(t, "Parameters")["Chain"])
	require.Equal(t, "on", chain["Default"])
	require.Equal(t, []any{"on", "off"}, chain["AllowedValues"])
	require.Equal(t, equals(ref("Chain"), "on"), b.section(t, "Conditions")["ChainOn"])
}

func TestTemplateSchedule(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Equal(t, []string{"EventRule", "EveryMinute"}, b.ids(t, ruleType))
	every := b.properties(t, "EveryMinute", ruleType)
	require.Equal(t, "rate(1 minute)", every["ScheduleExpression"])
	require.Equal(t, []any{object{"Id": "sweep", "Arn": getAtt("Sweep.Arn")}}, every["Targets"])
	require.NotContains(t, every, "State", "the kill switch leaves the sweep on")
	require.Equal(t, object{
		"FunctionName": ref("Sweep"), "Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com", "SourceArn": getAtt("EveryMinute.Arn"),
	}, b.properties(t, "SweepBySchedule", "AWS::Lambda::Permission"))
	require.Equal(t, object{"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}, b.properties(t, "Sweep", functionType)["EventInvokeConfig"])

	for _, id := range []string{"EventRule", "EventByRule"} {
		require.Equal(t, "HasEventSources", asMap(t, b.section(t, "Resources")[id])["Condition"], id)
	}
	on := b.properties(t, "EventRule", ruleType)
	require.Equal(t, ref("EventBus"), on["EventBusName"])
	require.Equal(t, object{
		"source":      object{"Fn::Split": []any{",", ref("EventSources")}},
		"detail-type": when("HasEventDetailTypes", object{"Fn::Split": []any{",", ref("EventDetailTypes")}}, noValue),
	}, on["EventPattern"])
	require.Equal(t, []any{object{"Id": "event", "Arn": getAtt("Event.Arn")}}, on["Targets"])
	require.Equal(t, object{
		"FunctionName": ref("Event"), "Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com", "SourceArn": getAtt("EventRule.Arn"),
	}, b.properties(t, "EventByRule", "AWS::Lambda::Permission"))
	require.Equal(t, object{
		"MaximumRetryAttempts": 2,
		"DestinationConfig":    object{"OnFailure": object{"Type": "SQS", "Destination": getAtt("FailedEvents.Arn")}},
	}, b.properties(t, "Event", functionType)["EventInvokeConfig"], "an event that fails is kept")
	for _, id := range functionIDs {
		if id != "Event" && id != "Sweep" {
			require.NotContains(t, b.properties(t, id, functionType), "EventInvokeConfig", "%s: nobody invokes it and goes away", id)
		}
	}
}

func TestTemplateFunctions(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	require.Equal(t, functionIDs, b.ids(t, functionType))
	require.Empty(t, b.ids(t, "AWS::Lambda::Function"))

	// One folder and one build target for each.
	folders, err := os.ReadDir("../functions")
	require.NoError(t, err)
	var names []string
	for _, f := range folders {
		if f.IsDir() && f.Name() != "testdata" {
			names = append(names, f.Name())
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	targets := regexp.MustCompile(`(?m)^FUNCTIONS\s*:= (.*)$`).FindSubmatch(makefile)
	require.NotNil(t, targets)
	var lower []string
	for _, id := range functionIDs {
		lower = append(lower, strings.ToLower(id))
	}
	require.Equal(t, lower, names, "folders of functions/")
	require.ElementsMatch(t, functionIDs, strings.Fields(string(targets[1])), "FUNCTIONS of the Makefile")
	for _, flag := range []string{"CGO_ENABLED=0", "GOOS=linux", "-trimpath", "-tags lambda.norpc", `-ldflags "-s -w"`, `-o "$(ARTIFACTS_DIR)/bootstrap"`} {
		require.Contains(t, string(makefile), flag)
	}

	require.Equal(t, object{
		"Runtime": "provided.al2023", "Handler": "bootstrap", "CodeUri": ".", "Architectures": []any{ref("Architecture")},
		"MemorySize": ref("ApiMemory"), "Timeout": 30, "KmsKeyArn": when("HasKmsKey", ref("KmsKeyArn"), noValue),
	}, b.section(t, "Globals")["Function"], "RecursiveLoop must not be among them")
	require.Equal(t, "arm64", asMap(t, b.section(t, "Parameters")["Architecture"])["Default"])
	for _, id := range functionIDs {
		p := b.properties(t, id, functionType)
		require.Equal(t, object{"BuildMethod": "makefile"}, b.resource(t, id, functionType)["Metadata"], id)
		require.Equal(t, getAtt(id+"Role.Arn"), p["Role"], "%s: a role that SAM makes has managed policies", id)
		require.Equal(t, object{"LogGroup": ref(id + "Logs"), "LogFormat": "JSON"}, p["LoggingConfig"], id)
		for _, none := range []string{"Policies", "Events", "FunctionName", "FunctionUrlConfig", "VpcConfig"} {
			require.NotContains(t, p, none, id)
		}
		if id == "Step" {
			require.Equal(t, "Allow", p["RecursiveLoop"], "without it Lambda cuts the chain after some 16 steps")
			continue
		}
		require.NotContains(t, p, "RecursiveLoop", "%s keeps Lambda's guard", id)
	}
	step := b.properties(t, "Step", functionType)
	require.Equal(t, ref("StepMemory"), step["MemorySize"])
	require.Equal(t, when("Reserved", ref("MaxConcurrency"), noValue), step["ReservedConcurrentExecutions"], "what the mapping may take, no less")
	require.Equal(t, equals(ref("ReserveConcurrency"), "true"), b.section(t, "Conditions")["Reserved"])
}

func TestTemplateEnvironment(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	api := []string{"ADJOURN_API_ID", "ADJOURN_TENANT_CLAIM", "ADJOURN_ROLES_CLAIM", "ADJOURN_FIXED_TENANT", "ADJOURN_IAM_TENANT", "ADJOURN_ALLOW_UNAUTHENTICATED", "ADJOURN_MAX_WAIT"}
	tells := []string{"ADJOURN_NOTICES", "ADJOURN_NOTICE_QUEUE_URL", "ADJOURN_SLACK_TENANT"} // whose writes tell something
	links := []string{"ADJOURN_GRANT_KEYS", "ADJOURN_PUBLIC_URL", "ADJOURN_SIGN_IN_URL"}
	begins := []string{"ADJOURN_POLICY"} // a task: with a retry, a fork, a next turn
	want := map[string][]string{
		"Start":  append([]string{"ADJOURN_MODEL", "ADJOURN_POLICY"}, api...),
		"Step":   append([]string{"ADJOURN_STEPS_PER_INVOCATION", "ADJOURN_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"}, tells...),
		"Resume": slices.Concat(begins, api, tells), "Submit": slices.Concat(api, tells, links, []string{"ADJOURN_SLACK_SIGNING_SECRET", "ADJOURN_SLACK_PEOPLE", "ADJOURN_SLACK_SIGNED_IN"}), "Query": slices.Concat(api, links),
		"Notice": {"ADJOURN_PUBLIC_URL", "ADJOURN_NOTICE_BUS", "ADJOURN_WEBHOOK_URL", "ADJOURN_WEBHOOK_SECRET", "ADJOURN_WEBHOOK_ARGUMENTS", "ADJOURN_SLACK_TOKEN", "ADJOURN_SLACK_CHANNEL", "ADJOURN_SLACK_ARGUMENTS", "ADJOURN_SLACK_DECIDES", "ADJOURN_SLACK_SIGNED_IN"},
		"Event":  {"ADJOURN_MODEL", "ADJOURN_POLICY", "ADJOURN_EVENT_TEMPLATE", "ADJOURN_EVENT_TENANT"},
		"Sweep":  append([]string{"ADJOURN_DEAD_LETTERS_URL"}, tells...),
	}
	values := object{
		"ADJOURN_TABLE": when("Restored", ref("RestoredTable"), ref("State")), "ADJOURN_BUCKET": ref("Blobs"), "ADJOURN_QUEUE_URL": ref("Steps"), "ADJOURN_LOG": ref("LogLevel"), "ADJOURN_LAB": ref("Lab"),
		"ADJOURN_API_ID": ref("Api"), "ADJOURN_TENANT_CLAIM": when("HasFixedTenant", noValue, ref("TenantClaim")),
		"ADJOURN_ROLES_CLAIM": ref("RolesClaim"), "ADJOURN_FIXED_TENANT": ref("FixedTenant"), "ADJOURN_IAM_TENANT": ref("IamTenant"), "ADJOURN_ALLOW_UNAUTHENTICATED": ref("AllowUnauthenticated"),
		"ADJOURN_MAX_WAIT": sub("${MaxWait}s"),
		"ADJOURN_MODEL":    ref("Model"), "ADJOURN_POLICY": ref("ToolPolicy"), "ADJOURN_EVENT_TEMPLATE": ref("EventTemplate"), "ADJOURN_EVENT_TENANT": ref("EventTenant"),
		"ADJOURN_STEPS_PER_INVOCATION": ref("StepsPerInvocation"), "ADJOURN_DEAD_LETTERS_URL": ref("DeadLetters"),
		"OPENAI_API_KEY":           when("HasModelSecret", sub("{{resolve:secretsmanager:${ModelSecret}:SecretString:OPENAI_API_KEY}}"), noValue),
		"OPENAI_BASE_URL":          ref("OpenAIBaseUrl"),
		"ADJOURN_NOTICES":          object{"Fn::Join": []any{",", []any{when("HasWebhook", "webhook", ""), when("HasNoticeBus", "eventbridge", ""), when("HasSlack", "slack", "")}}},
		"ADJOURN_NOTICE_QUEUE_URL": ref("Notices"), "ADJOURN_NOTICE_BUS": ref("NoticeBus"),
		"ADJOURN_GRANT_KEYS":  when("HasGrantSecret", sub("{{resolve:secretsmanager:${GrantSecret}:SecretString:ADJOURN_GRANT_KEYS}}"), noValue),
		"ADJOURN_PUBLIC_URL":  when("HasPublicUrl", ref("PublicUrl"), sub("https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}")),
		"ADJOURN_SIGN_IN_URL": ref("SignInUrl"),
		"ADJOURN_WEBHOOK_URL": ref("WebhookUrl"), "ADJOURN_WEBHOOK_ARGUMENTS": ref("WebhookArguments"),
		"ADJOURN_SLACK_TOKEN":          when("HasSlack", sub("{{resolve:secretsmanager:${SlackSecret}:SecretString:ADJOURN_SLACK_TOKEN}}"), noValue),
		"ADJOURN_SLACK_SIGNING_SECRET": when("SlackDecides", sub("{{resolve:secretsmanager:${SlackSecret}:SecretString:ADJOURN_SLACK_SIGNING_SECRET}}"), noValue),
		"ADJOURN_SLACK_PEOPLE":         when("SlackDecides", ref("SlackPeople"), noValue),
		"ADJOURN_SLACK_CHANNEL":        ref("SlackChannel"), "ADJOURN_SLACK_ARGUMENTS": ref("SlackArguments"), "ADJOURN_SLACK_SIGNED_IN": ref("SlackSignedIn"), "ADJOURN_SLACK_TENANT": ref("SlackTenant"),
		"ADJOURN_SLACK_DECIDES":  when("SlackDecides", "true", "false"),
		"ADJOURN_WEBHOOK_SECRET": when("HasWebhook", sub("{{resolve:secretsmanager:${WebhookSecret}:SecretString:ADJOURN_WEBHOOK_SECRET}}"), noValue),
	}
	given := map[string]bool{}
	for _, id := range functionIDs {
		wanted := object{}
		for _, name := range append([]string{"ADJOURN_TABLE", "ADJOURN_BUCKET", "ADJOURN_QUEUE_URL", "ADJOURN_LOG", "ADJOURN_LAB"}, want[id]...) {
			wanted[name], given[name] = values[name], true
		}
		require.Equal(t, object{"Variables": wanted}, b.properties(t, id, functionType)["Environment"], id)
	}

	// What the code reads is given or left out on purpose.
	read := map[string]bool{agent.ModelVariable: true}
	env := func(name string) string { read[name] = true; return "" }
	_, err := serverless.ReadSettings(env)
	require.Error(t, err, "an empty environment is no setting")
	_, err = openai.Open(t.Context(), "m", env)
	require.Error(t, err)
	for name, why := range map[string]string{
		"ADJOURN_DATA":               "the embedded engine's file",
		"ADJOURN_SLACK_API":          "only GovSlack has another",
		"ADJOURN_WEBHOOK_LINKS":      "the notice function has no key of links, and decides nothing",
		"ADJOURN_WEBHOOK_ALLOW_HTTP": "WebhookUrl takes no other", "ADJOURN_WEBHOOK_ALLOW_PRIVATE": "the function is in no private network",
		"ADJOURN_AGENT":      "callers name the agent",
		"ADJOURN_LEASE":      "20 s are right for everybody",
		"ADJOURN_LAB_FOLDER": "only /tmp can be written",
		"ADJOURN_TRUST_DATA": "there is no data file",
	} {
		require.Contains(t, read, name, "no longer read: take it off this list (%s)", why)
		delete(read, name)
	}
	require.Equal(t, slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(given)))
}
