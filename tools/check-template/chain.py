"""Queues, functions and what calls them."""

import json
import re

from rules import consumers, listed, may, rule, statements
from scene import TOKEN

QUEUE, FUNCTION = "AWS::SQS::Queue", "AWS::Lambda::Function"
SQS_MAPPING = "lambda/latest/dg/services-sqs-configure.html"
LAMBDA_LIMITS = "lambda/latest/dg/gettingstarted-limits.html"
DEAD_LETTERS = "AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html"


@rule("queue-visibility", "a message is hidden at least as long as its function may run", SQS_MAPPING)
def queue_visibility(s):
    for _, _, queue_id, queue, function_id, function in consumers(s):
        hidden, runs = int(queue.get("VisibilityTimeout", 30)), int(function.get("Timeout", 3))
        if hidden < runs:
            yield queue_id, f"VisibilityTimeout {hidden} s is less than the {runs} s of {function_id}"


@rule("queue-limits", "a queue's numbers are within SQS's", "AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html")
def queue_limits(s):
    for id, q in s.of(QUEUE):
        for name, least, most in (("VisibilityTimeout", 0, 43200), ("MessageRetentionPeriod", 60, 1209600), ("ReceiveMessageWaitTimeSeconds", 0, 20), ("DelaySeconds", 0, 900)):
            if name in q and not least <= int(q[name]) <= most:
                yield id, f"{name} {q[name]} is not within {least} to {most}"
        if q.get("SqsManagedSseEnabled") and "KmsMasterKeyId" in q:
            yield id, "SqsManagedSseEnabled and KmsMasterKeyId exclude each other"


def dead_letters(s):
    for id, q in s.of(QUEUE):
        target_id, target = s.named(q.get("RedrivePolicy", {}).get("deadLetterTargetArn"), QUEUE)
        if target:
            yield id, q, target_id, target


@rule("dead-letters-outlive", "a dead letter keeps the age it had: its queue keeps messages longer than the one they come from", DEAD_LETTERS)
def dead_letters_outlive(s):
    for id, q, target_id, target in dead_letters(s):
        here, there = int(q.get("MessageRetentionPeriod", 345600)), int(target.get("MessageRetentionPeriod", 345600))
        if there <= here:
            yield target_id, f"keeps messages {there} s, {id} {here} s"


@rule("dead-letters-kind", "the dead letters of a FIFO queue go into a FIFO queue, others not", DEAD_LETTERS)
def dead_letters_kind(s):
    for id, q, target_id, target in dead_letters(s):
        if bool(q.get("FifoQueue")) != bool(target.get("FifoQueue")):
            yield target_id, f"is not of the kind of {id}"


@rule("redrive-count", "a queue that Lambda reads gives a message up after five deliveries or more, as throttling counts as one", SQS_MAPPING)
def redrive_count(s):
    for _, _, queue_id, queue, _, _ in consumers(s):
        count = int(queue.get("RedrivePolicy", {}).get("maxReceiveCount", 5))
        if not 5 <= count <= 1000:
            yield queue_id, f"maxReceiveCount is {count}"


@rule("reserved-concurrency", "reserved concurrency is no less than what the mappings of the function may use", "lambda/latest/dg/services-sqs-scaling.html")
def reserved_concurrency(s):
    wanted = {}
    for _, m, _, _, function_id, _ in consumers(s):
        wanted[function_id] = wanted.get(function_id, 0) + int(m.get("ScalingConfig", {}).get("MaximumConcurrency", 0))
    for id, f in s.of(FUNCTION):
        if "ReservedConcurrentExecutions" in f and int(f["ReservedConcurrentExecutions"]) < wanted.get(id, 0):
            yield id, f"reserves {f['ReservedConcurrentExecutions']}, and its mappings use {wanted[id]}"


@rule("mapping-limits", "a mapping's concurrency is 2 to 1,000, and a batch over ten has a window", SQS_MAPPING)
def mapping_limits(s):
    for id, m, _, _, _, _ in consumers(s):
        most = m.get("ScalingConfig", {}).get("MaximumConcurrency")
        if most is not None and not 2 <= int(most) <= 1000:
            yield id, f"MaximumConcurrency is {most}"
        if int(m.get("BatchSize", 10)) > 10 and int(m.get("MaximumBatchingWindowInSeconds", 0)) < 1:
            yield id, f"BatchSize {m['BatchSize']} needs MaximumBatchingWindowInSeconds"


@rule("mapping-rights", "a function may receive and delete the messages of the queue it is fed from", SQS_MAPPING)
def mapping_rights(s):
    for id, _, queue_id, _, function_id, function in consumers(s):
        for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"):
            if not may(s, function, action, f"<{queue_id}.Arn>"):
                yield id, f"the role of {function_id} lacks {action} for {queue_id}"


@rule("key-rights", "who uses what a key of yours encrypts may use the key, by a policy of its role, which is made before it",
      "AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html")
def key_rights(s):
    keys = {}
    for id, q in s.of(QUEUE):
        keys[id] = q.get("KmsMasterKeyId")
    for id, t in s.of("AWS::DynamoDB::Table"):
        keys[id] = t.get("SSESpecification", {}).get("KMSMasterKeyId")
    for id, b in s.of("AWS::S3::Bucket"):
        for r in b.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", []):
            keys[id] = r["ServerSideEncryptionByDefault"].get("KMSMasterKeyID")
    for id, f in s.of(FUNCTION):
        used = {f["KmsKeyArn"]} if f.get("KmsKeyArn") else set()
        for _, resources in statements(s, f):
            used |= {keys[m[1]] for r in resources for m in [TOKEN.match(r)] if m and keys.get(m[1])}
        for key in used:
            for action in ("kms:Decrypt", "kms:GenerateDataKey"):
                if not may(s, f, action, key):
                    yield id, f"its role lacks {action} for the key"


@rule("previous-keys", "what was written under an earlier key stays encrypted with it, so whoever reads may decrypt with it",
      "AmazonS3/latest/userguide/default-encryption-faq.html")
def previous_keys(s):
    previous = [k for k in s.parameters.get("PreviousKmsKeyArns", "").split(",") if k]
    for id, f in s.of(FUNCTION):
        reads = any(a in ("s3:GetObject", "sqs:ReceiveMessage", "dynamodb:GetItem") for actions, _ in statements(s, f) for a in actions)
        for key in previous:
            if reads and not may(s, f, "kms:Decrypt", key):
                yield id, "its role may not decrypt with PreviousKmsKeyArns"


@rule("destination-rights", "a function may send to the queue that its failed events go to", "lambda/latest/dg/invocation-async-retain-records.html")
def destination_rights(s):
    for id, c in s.of("AWS::Lambda::EventInvokeConfig"):
        _, f = s.named(c.get("FunctionName"), FUNCTION)
        for where in c.get("DestinationConfig", {}).values():
            queue_id, _ = s.named(where.get("Destination"), QUEUE)
            if f and queue_id and not may(s, f, "sqs:SendMessage", f"<{queue_id}.Arn>"):
                yield id, f"its function lacks sqs:SendMessage for {queue_id}"


@rule("function-limits", "a function runs 15 minutes at most, with 128 to 10,240 MB", LAMBDA_LIMITS)
def function_limits(s):
    for id, f in s.of(FUNCTION):
        if not 1 <= int(f.get("Timeout", 3)) <= 900:
            yield id, f"Timeout is {f['Timeout']} s"
        if not 128 <= int(f.get("MemorySize", 128)) <= 10240:
            yield id, f"MemorySize is {f['MemorySize']} MB"


# How long what only AWS knows can be at most.
LENGTHS = {"AWS::DynamoDB::Table": 255, "AWS::S3::Bucket": 63, "AWS::SQS::Queue": 160}


@rule("environment-size", "the environment of a function has 4 KB at most, with every parameter as long as it may be", LAMBDA_LIMITS)
def environment_size(s):
    for id, f in s.of(FUNCTION):
        size = 0
        for name, v in f.get("Environment", {}).get("Variables", {}).items():
            text = re.sub(r"\{\{resolve:.*\}\}", "k" * 256, str(v)) # a provider's key
            text = TOKEN.sub(lambda m: "r" * LENGTHS.get(s.resources[m[1]]["Type"], 256), text)
            size += len(name.encode()) + len(text.encode())
        if size > 4096:
            yield id, f"its environment can have {size} bytes: give its parameters a MaxLength"


RESERVED = {"_HANDLER", "_X_AMZN_TRACE_ID", "TZ"}


@rule("environment-names", "a variable's name is of letters, digits and _, and none of Lambda's own", "lambda/latest/dg/configuration-envvars.html")
def environment_names(s):
    for id, f in s.of(FUNCTION):
        for name in f.get("Environment", {}).get("Variables", {}):
            if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]+", name) or name in RESERVED or name.startswith(("AWS_", "LAMBDA_")):
                yield id, f"{name} cannot be set"


@rule("permission-source", "a service that may call a function may do so for one source; S3's ARNs have no account, so it is named too",
      "lambda/latest/dg/permissions-function-services.html")
def permission_source(s):
    for id, p in s.of("AWS::Lambda::Permission"):
        if p["Principal"].endswith(".amazonaws.com") and not p.get("SourceArn"):
            yield id, f"{p['Principal']} may call it for anybody: name SourceArn"
        if p["Principal"] == "s3.amazonaws.com" and not p.get("SourceAccount"):
            yield id, "name SourceAccount: a bucket's ARN has none"


@rule("rule-targets", "an EventBridge rule has five targets at most and may call each of its functions", "eventbridge/latest/userguide/eb-use-resource-based.html")
def rule_targets(s):
    allowed = {(p["FunctionName"].strip("<>").removesuffix(".Arn"), p.get("SourceArn")) for _, p in s.of("AWS::Lambda::Permission") if p["Principal"] == "events.amazonaws.com"}
    for id, r in s.of("AWS::Events::Rule"):
        if len(r.get("Targets", [])) > 5:
            yield id, f"it has {len(r['Targets'])} targets"
        for t in r.get("Targets", []):
            function, f = s.named(t["Arn"], FUNCTION)
            if f and (function, f"<{id}.Arn>") not in allowed:
                yield id, f"it may not call {function}"


@rule("rule-pattern", "an event pattern has 2,048 characters at most, with every parameter as long as it may be", "eventbridge/latest/userguide/eb-quota.html")
def rule_pattern(s):
    for id, r in s.of("AWS::Events::Rule"):
        size = len(json.dumps(r.get("EventPattern", {}), separators=(",", ":")))
        if size > 2048:
            yield id, f"its pattern can have {size} characters: give its parameters a MaxLength"


@rule("schedule", "a rate is of one minute, hour, day, or of several minutes, hours, days", "eventbridge/latest/userguide/eb-scheduled-rule-pattern.html")
def schedule(s):
    for id, r in s.of("AWS::Events::Rule"):
        rate = r.get("ScheduleExpression", "rate(1 minute)")
        if rate.startswith("rate") and not re.fullmatch(r"rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]+) (minutes|hours|days))\)", rate):
            yield id, f"{rate} is no rate"


@rule("recursion", "a function that feeds the queue it is fed from is let loop, and no other", "lambda/latest/dg/invocation-recursion.html")
def recursion(s):
    loops = {function_id for _, _, queue_id, _, function_id, f in consumers(s) if may(s, f, "sqs:SendMessage", f"<{queue_id}.Arn>")}
    for id, f in s.of(FUNCTION):
        allowed = f.get("RecursiveLoop") == "Allow"
        if allowed != (id in loops):
            yield id, "it feeds itself, and Lambda stops that after some 16 times: RecursiveLoop: Allow" if id in loops else "it feeds no queue of its own: leave RecursiveLoop out"


@rule("dynamic-reference", "a reference to a secret has the parts that CloudFormation takes", "AWSCloudFormation/latest/UserGuide/dynamic-references-secretsmanager.html")
def dynamic_reference(s):
    for id, f in s.of(FUNCTION):
        for v in listed(list(f.get("Environment", {}).get("Variables", {}).values())):
            if "{{resolve:" in str(v) and not re.fullmatch(r"\{\{resolve:secretsmanager:(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:)?[^:{}]+:SecretString:[^:{}]+(:[^:{}]*){0,2}\}\}", str(v)):
                yield id, f"{v} is none"
