"""Every rule fires on a copy of template.yaml that breaks it, and no other does;
what cfn-lint looks at are the real resources."""

import copy
import sys
import unittest

sys.dont_write_bytecode = True

import check
import scene
from rules import RULES, violations

TEMPLATE = scene.read()
# The scenes in which each break below shows.
SCENES = ["first deployment", "everything given, tokens", "everything at its most, tokens", "everything at its longest, tokens"]


def statement(t, function, action):
    """The statement of a function's role that allows an action, and its list."""
    for s in t["Resources"][function + "Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]:
        if action in s["Action"]:
            return s


def without(t, function, action):
    s = statement(t, function, action)
    s["Action"] = [a for a in (s["Action"] if isinstance(s["Action"], list) else [s["Action"]]) if a != action] or ["dynamodb:DescribeTable"]


def put(*path_and_value):
    """A break that sets what lies at a path in the resources; DELETE takes it out."""
    *path, last, value = path_and_value

    def do(t):
        at = t["Resources"]
        for p in path:
            at = at[p]
        if value is DELETE:
            del at[last]
        else:
            at[last] = value
    return do


DELETE = object()
ALARM = ("ApiFails", "Properties")


def add(id, type_, properties):
    return lambda t: t["Resources"].update({id: {"Type": type_, "Properties": properties}})


def many(t):
    for n in range(501):
        add(f"More{n}", "AWS::SNS::Topic", {})(t)


def long_role(t):
    statement(t, "Start", "dynamodb:GetItem")["Action"] += [f"dynamodb:{n:0400d}" for n in range(30)]


def many_routes(t):
    for n in range(301):
        r = copy.deepcopy(t["Resources"]["RouteGetOpenAPI"])
        r["Properties"]["RouteKey"] = f"GET /more/{n}"
        t["Resources"][f"Route{n}"] = r


def many_indexes(t):
    indexes = t["Resources"]["State"]["Properties"]["GlobalSecondaryIndexes"]
    for n in range(21):
        indexes.append(indexes[0] | {"IndexName": f"more{n}"})


def unwatched(t):
    del t["Resources"]["EventsFailed"]


BREAKS = {
    "queue-visibility": put("DeadLetters", "Properties", "VisibilityTimeout", 40),
    "queue-limits": put("Steps", "Properties", "ReceiveMessageWaitTimeSeconds", 21),
    "dead-letters-outlive": put("Steps", "Properties", "MessageRetentionPeriod", 1209600),
    "dead-letters-kind": put("DeadLetters", "Properties", "FifoQueue", True),
    "redrive-count": put("Steps", "Properties", "RedrivePolicy", "maxReceiveCount", 4),
    "reserved-concurrency": put("Step", "Properties", "ReservedConcurrentExecutions", 4),
    "mapping-limits": put("SweepByDeadLetters", "Properties", "ScalingConfig", "MaximumConcurrency", 1),
    "mapping-rights": lambda t: without(t, "Step", "sqs:GetQueueAttributes"),
    "key-rights": lambda t: t["Resources"]["QueryRole"]["Properties"]["Policies"].pop(1),
    "previous-keys": lambda t: t["Resources"]["QueryRole"]["Properties"]["Policies"].pop(2),
    "destination-rights": lambda t: statement_of_failed(t).update(Action="sqs:GetQueueUrl"),
    "function-limits": put("Sweep", "Properties", "MemorySize", 64),
    "environment-size": lambda t: t["Parameters"]["OpenAIBaseUrl"].pop("MaxLength"),
    "environment-names": put("Sweep", "Properties", "Environment", "Variables", "AWS_REGION", "eu-west-1"),
    "permission-source": add("EventByBucket", "AWS::Lambda::Permission", {
        "FunctionName": {"Ref": "Start"}, "Action": "lambda:InvokeFunction", "Principal": "s3.amazonaws.com", "SourceArn": "arn:aws:s3:::b"}),
    "rule-targets": put("SweepBySchedule", "Properties", "FunctionName", {"Ref": "Step"}),
    "rule-pattern": lambda t: t["Parameters"]["EventDetailTypes"].pop("MaxLength"),
    "schedule": put("EveryMinute", "Properties", "ScheduleExpression", "rate(1 minutes)"),
    "recursion": put("Step", "Properties", "RecursiveLoop", DELETE),
    "dynamic-reference": put("Step", "Properties", "Environment", "Variables", "OPENAI_API_KEY", "{{resolve:secretsmanager:models:OPENAI_API_KEY}}"),
    "integration-timeout": put("Query", "Properties", "Timeout", 31),
    "integration-permission": put("QueryByApi", "Properties", "FunctionName", {"Ref": "Submit"}),
    "route-settings": put("Stage", "DependsOn", []),
    "route-keys": put("RouteListWaits", "Properties", "RouteKey", "GET /waits"),
    "authorizer": put("RouteListWaits", "Properties", "AuthorizerId", DELETE),
    "api-quotas": many_routes,
    "access-log-format": put("Stage", "Properties", "AccessLogSettings", "Format", "$context.status"),
    "access-log-group": put("ApiLogs", "Properties", "LogGroupName", {"Fn::Sub": "/aws/apigateway/${AWS::StackName}"}),
    "table-indexes": many_indexes,
    "table-caps": lambda t: t["Resources"]["State"]["Properties"]["GlobalSecondaryIndexes"][0].pop("OnDemandThroughput"),
    "retained": put("Blobs", "DeletionPolicy", "Retain"),
    "deletable": lambda t: t["Parameters"]["DeletionProtection"].update(Default="true"),
    "names": put("Api", "Properties", "Name", "adjourn-api"),
    "bucket-missing": lambda t: without(t, "Query", "s3:ListBucket"),
    "bucket-versions": put("Blobs", "Properties", "VersioningConfiguration", DELETE),
    "index-rights": lambda t: rename(t, "inbox"),
    "role-size": long_role,
    "policy-names": lambda t: t["Resources"]["StartRole"]["Properties"]["Policies"].append(t["Resources"]["StartRole"]["Properties"]["Policies"][0]),
    "template-limits": many,
    "log-rights": lambda t: without(t, "Query", "logs:CreateLogStream"),
    "alarm-window": put(*ALARM, "EvaluationPeriods", 289),
    "alarm-metric": put(*ALARM, "MetricName", "5XXError"),
    "alarm-missing": put(*ALARM, "TreatMissingData", "breaching"),
    "alarm-actions": put(*ALARM, "OKActions", DELETE),
    "alarm-loop": put("SweepLoopsCut", "Properties", "Dimensions", [{"Name": "FunctionName", "Value": {"Ref": "Step"}}]),
    "alarm-dead-letters": unwatched,
    "metric-filter": put("StepTasksFailed", "Properties", "LogGroupName", "/aws/lambda/step"),
}


def statement_of_failed(t):
    return next(s for s in t["Resources"]["EventRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"] if "FailedEvents" in str(s["Resource"]))


def rename(t, index):
    for i in t["Resources"]["State"]["Properties"]["GlobalSecondaryIndexes"]:
        if i["IndexName"] == index:
            i["IndexName"] = "other"


def broken(rule):
    t = copy.deepcopy(TEMPLATE)
    BREAKS[rule](t)
    return t


class Rules(unittest.TestCase):
    def test_each_rule_has_a_break(self):
        self.assertEqual(sorted(RULES), sorted(BREAKS))

    def test_the_template_breaks_none(self):
        through, refused = scene.scenes(TEMPLATE)
        self.assertEqual(violations(through), [])
        self.assertEqual(refused, ["defaults"], "a deployment with Enter on everything, and nothing else, is refused")
        self.assertGreater(len(through), 60)
        for name, p in TEMPLATE["Parameters"].items():
            tried = {s.parameters[name] for s in through}
            self.assertLessEqual(set(scene.ends(p)), tried, f"{name} is not tried at its ends")
            self.assertTrue("Default" not in p or p["Default"] != "" or len(tried) > 1, f"{name} is never given: add a sample that its pattern takes")

    def test_each_break_is_found_by_its_rule_alone(self):
        for rule in sorted(BREAKS):
            with self.subTest(rule):
                through, _ = scene.scenes(broken(rule), only=SCENES)
                self.assertEqual({v[0] for v in violations(through)}, {rule}, violations(through))

    def test_a_lack_of_data_is_told_soon(self):
        t = copy.deepcopy(TEMPLATE)
        put("SweepSilent", "Properties", "Period", 300)(t)
        through, _ = scene.scenes(t, only=SCENES)
        self.assertEqual({v[:2] for v in violations(through)}, {("alarm-missing", "SweepSilent")})


class Lint(unittest.TestCase):
    """cfn-lint takes seconds a template, so three breaks are enough."""

    def found(self, t):
        left, idle = check.excepted(check.lint(scene.transform(t)), check.EXCEPTIONS)
        return {(rule, id) for rule, id, _ in left}, idle

    def test_real_resources_are_held_to_their_schemas(self):
        t = copy.deepcopy(TEMPLATE)
        put("ApiLogs", "Properties", "RetentionInDays", 2)(t)
        put("Sweep", "Properties", "EventInvokeConfig", "MaximumRetryAttempts", 3)(t)  # of a resource that SAM makes
        put("State", "Properties", "OnDemandThroughput", {"MaxReadRequestUnits": -1})(t)
        put("Steps", "Properties", "VisibilityTimout", 30)(t)
        found, _ = self.found(t)
        self.assertEqual({id for _, id in found}, {"ApiLogs", "SweepEventInvokeConfig", "State", "Steps"})

    def test_an_exception_for_nothing_is_told(self):
        t = copy.deepcopy(TEMPLATE)
        t["Resources"]["Live"] |= {"DeletionPolicy": "Delete", "UpdateReplacePolicy": "Delete"}
        self.assertEqual(self.found(t), (set(), [("I3011", "Live")]))


if __name__ == "__main__":
    unittest.main()
