"""Logs, metrics and alarms."""

import re

from rules import listed, may, rule

GROUP, ALARM, FUNCTION = "AWS::Logs::LogGroup", "AWS::CloudWatch::Alarm", "AWS::Lambda::Function"
PUT_ALARM = "AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html"
MISSING = "AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html"


@rule("log-rights", "a function logs into a group of the template, whose days are bounded, and may write there", "lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html")
def log_rights(s):
    for id, f in s.of(FUNCTION):
        group_id, group = s.named(f.get("LoggingConfig", {}).get("LogGroup"), GROUP)
        if not group:
            yield id, "it makes a log group of its own, which stays for ever"
            continue
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            if not may(s, f, action, f"<{group_id}.Arn>"):
                yield id, f"its role lacks {action} for {group_id}"
    for id, g in s.of(GROUP):
        if not g.get("RetentionInDays"):
            yield id, "it keeps logs for ever"


@rule("alarm-window", "an alarm looks at a day at most (a week where a period is an hour or more), in periods of whole minutes", PUT_ALARM)
def alarm_window(s):
    for id, a in s.of(ALARM):
        periods = {int(a["Period"])} if "Period" in a else {int(m.get("Period") or m["MetricStat"]["Period"]) for m in a["Metrics"]}
        every, need = int(a["EvaluationPeriods"]), int(a.get("DatapointsToAlarm", a["EvaluationPeriods"]))
        for period in periods:
            if period not in (10, 20, 30) and period % 60:
                yield id, f"its period is {period} s"
            if period * every > (604800 if period >= 3600 else 86400):
                yield id, f"it looks at {period * every} s"
        if need > every:
            yield id, f"it needs {need} of {every} periods"


# Metrics of AWS with the dimensions they have.
LAMBDA, SQS, API, DYNAMODB = "AWS/Lambda", "AWS/SQS", "AWS/ApiGateway", "AWS/DynamoDB"
METRICS = {
    LAMBDA: ({"FunctionName"}, {"Invocations", "Errors", "Throttles", "Duration", "ConcurrentExecutions", "DeadLetterErrors", "DestinationDeliveryFailures",
                                "RecursiveInvocationsDropped", "AsyncEventsReceived", "AsyncEventAge", "AsyncEventsDropped"}),
    SQS: ({"QueueName"}, {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
                          "NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted", "NumberOfEmptyReceives", "SentMessageSize"}),
    API: ({"ApiId"}, {"4xx", "5xx", "Count", "DataProcessed", "IntegrationLatency", "Latency"}),
}
# Of DynamoDB by query, where the dimensions are in the query.
QUERIED = {DYNAMODB: {"ThrottledRequests": {"Operation", "TableName"}, "SystemErrors": {"Operation", "TableName"}}}


@rule("alarm-metric", "an alarm watches a metric that there is, with its dimensions: AWS's own, or one that a filter of the template makes",
      "AmazonCloudWatch/latest/monitoring/aws-services-cloudwatch-metrics.html")
def alarm_metric(s):
    made = {(t["MetricNamespace"], t["MetricName"]) for _, f in s.of("AWS::Logs::MetricFilter") for t in f["MetricTransformations"]}
    for id, a in s.of(ALARM):
        for m in a.get("Metrics", []):
            q = re.fullmatch(r'SELECT SUM\((\w+)\) FROM SCHEMA\("([^"]+)", ([\w, ]+)\) WHERE \w+ = \'\S+\'', m.get("Expression", ""))
            if not q or QUERIED.get(q[2], {}).get(q[1]) != set(q[3].split(", ")):
                yield id, f"{m.get('Expression')} is no query of a metric that is known here"
        if "Metrics" in a:
            continue
        if (a["Namespace"], a["MetricName"]) in made:
            if a.get("Dimensions"):
                yield id, "what a filter makes without dimensions has none"
            continue
        dimensions, names = METRICS.get(a["Namespace"], (set(), set()))
        if a["MetricName"] not in names or {d["Name"] for d in a.get("Dimensions", [])} != dimensions:
            yield id, f"there is no {a['Namespace']} {a['MetricName']} of {', '.join(d['Name'] for d in a.get('Dimensions', []))}"


@rule("alarm-missing", "no alarm takes a lack of data for a fault, as it begins with one; an alarm for too little tells of the lack itself", MISSING)
def alarm_missing(s):
    for id, a in s.of(ALARM):
        missing = a.get("TreatMissingData", "missing")
        if missing == "breaching":
            yield id, "it rings as soon as it is made: TreatMissingData breaching"
        if a["ComparisonOperator"].startswith("LessThan"):
            if missing != "missing" or a.get("AlarmActions") and a.get("InsufficientDataActions") != a["AlarmActions"]:
                yield id, "where nothing is counted it is silent: TreatMissingData missing, and InsufficientDataActions"
            if int(a.get("Period", 60)) > 60:
                yield id, "data is missing when some periods more than EvaluationPeriods have none: make them of one minute"
        elif missing != "notBreaching":
            yield id, f"TreatMissingData is {missing}: it would stay in alarm when nothing happens any more"


@rule("alarm-actions", "an alarm tells its topic when it begins and when it ends", PUT_ALARM)
def alarm_actions(s):
    if not s.parameters.get("AlarmTopicArn"):
        return
    for id, a in s.of(ALARM):
        for actions in ("AlarmActions", "OKActions"):
            if not 1 <= len(listed(a.get(actions))) <= 5:
                yield id, f"{actions}: none, or more than five"


@rule("alarm-loop", "where RecursiveLoop is Allow, Lambda counts no dropped loops", "lambda/latest/dg/invocation-recursion.html")
def alarm_loop(s):
    for id, a in s.of(ALARM):
        for d in a.get("Dimensions", []):
            _, f = s.named(d["Value"], FUNCTION)
            if a.get("MetricName") == "RecursiveInvocationsDropped" and f and f.get("RecursiveLoop") == "Allow":
                yield id, "it can never ring"


@rule("alarm-dead-letters", "every queue of dead letters or failed events has an alarm", "AWSSimpleQueueService/latest/SQSDeveloperGuide/dead-letter-queues-alarms-cloudwatch.html")
def alarm_dead_letters(s):
    watched = {d["Value"] for _, a in s.of(ALARM) if a.get("MetricName") == "ApproximateNumberOfMessagesVisible" for d in a["Dimensions"]}
    last = {q.get("RedrivePolicy", {}).get("deadLetterTargetArn") for _, q in s.of("AWS::SQS::Queue")}
    last |= {w.get("Destination") for _, c in s.of("AWS::Lambda::EventInvokeConfig") for w in c.get("DestinationConfig", {}).values()}
    for id, _ in s.of("AWS::SQS::Queue"):
        if f"<{id}.Arn>" in last and f"<{id}.QueueName>" not in watched:
            yield id, "nobody is told when something is in it"


@rule("metric-filter", "a filter's metric has a value, and a namespace and name without : * $", "AmazonCloudWatchLogs/latest/APIReference/API_MetricTransformation.html")
def metric_filter(s):
    for id, f in s.of("AWS::Logs::MetricFilter"):
        _, group = s.named(f["LogGroupName"], GROUP)
        for t in f["MetricTransformations"]:
            if not group or not all(re.fullmatch(r"[^:*$]{1,255}", t[n]) for n in ("MetricNamespace", "MetricName")):
                yield id, "its group is not of the template, or its metric has a name that is not taken"
