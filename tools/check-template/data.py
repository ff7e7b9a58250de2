"""Tables, buckets, roles, names, and the template as a whole."""

import json
import re

from rules import listed, may, rule
from scene import FIRST, TOKEN

TABLE, BUCKET, FUNCTION = "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::Lambda::Function"
DYNAMODB_LIMITS = "amazondynamodb/latest/developerguide/ServiceQuotas.html"
DELETION = "AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html"


@rule("table-indexes", "a table has 20 global indexes and 100 attributes projected by name at most, and defines the attributes of its keys alone", DYNAMODB_LIMITS)
def table_indexes(s):
    for id, t in s.of(TABLE):
        indexes = t.get("GlobalSecondaryIndexes", [])
        projected = sum(len(i["Projection"].get("NonKeyAttributes", [])) for i in indexes)
        if len(indexes) > 20 or projected > 100:
            yield id, f"it has {len(indexes)} indexes with {projected} attributes"
        keys = {k["AttributeName"] for schema in [t, *indexes] for k in schema["KeySchema"]}
        defined = {a["AttributeName"] for a in t["AttributeDefinitions"]}
        if keys != defined:
            yield id, f"keys and definitions differ: {', '.join(sorted(keys ^ defined))}"


@rule("table-caps", "a cap of a table is none of its indexes', so each has it too; none is below 1",
      "amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html")
def table_caps(s):
    for id, t in s.of(TABLE):
        cap = t.get("OnDemandThroughput")
        for i in t.get("GlobalSecondaryIndexes", []):
            if i.get("OnDemandThroughput") != cap:
                yield id, f"its cap and that of its index {i['IndexName']} differ"
        for name, units in (cap or {}).items():
            if int(units) < 1:
                yield id, f"{name} is {units}"


@rule("retained", "what is kept when its stack is deleted is kept when it is replaced, has no name of its own (a second stack could not be made beside it), and goes with a creation that fails", DELETION)
def retained(s):
    for id, r in s.resources.items():
        kept = r.get("DeletionPolicy", "Delete").startswith("Retain")
        if r["Type"] in (TABLE, BUCKET) and kept != (r.get("UpdateReplacePolicy") == "Retain"):
            yield id, "DeletionPolicy and UpdateReplacePolicy do not say the same"
        if not kept:
            continue
        if r["DeletionPolicy"] == "Retain":
            yield id, "Retain holds when its creation is rolled back too: RetainExceptOnCreate"
        for name in ("TableName", "BucketName", "QueueName", "LogGroupName"):
            if name in r["Properties"]:
                yield id, f"it is kept and has the name {r['Properties'][name]}"


@rule("deletable", "no table refuses to be deleted by default: the rollback of a first deployment would stop at it", DELETION)
def deletable(s):
    if s.name != FIRST:
        return
    for id, t in s.of(TABLE):
        if t.get("DeletionProtectionEnabled"):
            yield id, "DeletionProtectionEnabled is true with default parameters"


# The longest names, and the property they stand in.
NAMES = {
    FUNCTION: ("FunctionName", 64), "AWS::IAM::Role": ("RoleName", 64), "AWS::SQS::Queue": ("QueueName", 80), BUCKET: ("BucketName", 63),
    TABLE: ("TableName", 255), "AWS::Events::Rule": ("Name", 64), "AWS::CloudWatch::Alarm": ("AlarmName", 255), "AWS::ApiGatewayV2::Api": ("Name", 128),
    "AWS::Logs::LogGroup": ("LogGroupName", 512),
}


@rule("names", "a name has the stack's in it, or no second stack could be made, and fits also with a stack's name of 128 characters",
      "AWSCloudFormation/latest/TemplateReference/aws-properties-name.html")
def names(s):
    stack = s.pseudo["AWS::StackName"]
    for id, r in s.resources.items():
        property, most = NAMES.get(r["Type"], (None, 0))
        name = r["Properties"].get(property)
        if name is None:
            continue
        if stack not in name:
            yield id, f"{property} is the same in each stack"
        if len(name) > most:
            yield id, f"{property} can have {len(name)} characters; {most} is the most"


@rule("bucket-missing", "who may read objects may list the bucket: else S3 says 403 of one that is missing, and not 404", "AmazonS3/latest/API/API_GetObject.html")
def bucket_missing(s):
    for id, f in s.of(FUNCTION):
        for bucket, _ in s.of(BUCKET):
            if may(s, f, "s3:GetObject", f"<{bucket}.Arn>/*") and not may(s, f, "s3:ListBucket", f"<{bucket}.Arn>"):
                yield id, f"its role lacks s3:ListBucket for {bucket}"


@rule("bucket-versions", "a bucket beside a table that can be put back 35 days keeps what was deleted for longer, and not for ever",
      "amazondynamodb/latest/developerguide/Point-in-time-recovery.html")
def bucket_versions(s):
    if not any(t.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled") for _, t in s.of(TABLE)):
        return
    for id, b in s.of(BUCKET):
        days = [r.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays", 0) for r in b.get("LifecycleConfiguration", {}).get("Rules", [])]
        if b.get("VersioningConfiguration", {}).get("Status") != "Enabled" or max(days, default=0) <= 35:
            yield id, "it has no versions, or keeps them 35 days or less, or for ever"


@rule("index-rights", "a role that asks an index names one that exists", "amazondynamodb/latest/developerguide/using-identity-based-policies.html")
def index_rights(s):
    for id, role in s.of("AWS::IAM::Role"):
        for p in listed(role.get("Policies")):
            for statement in listed(p["PolicyDocument"]["Statement"]):
                for resource in listed(statement["Resource"]):
                    m = re.fullmatch(r"<(\w+)\.Arn>/index/(.*)", resource)
                    if m and m[2] not in [i["IndexName"] for i in s.resources[m[1]]["Properties"].get("GlobalSecondaryIndexes", [])]:
                        yield id, f"{m[1]} has no index {m[2]}"


@rule("role-size", "the policies in a role have 10,240 characters together, its trust 2,048", "IAM/latest/UserGuide/reference_iam-quotas.html")
def role_size(s):
    def size(document):
        text = re.sub(r"\s", "", json.dumps(document))
        return len(TOKEN.sub("r" * 256, text)) # an ARN is no longer
    for id, role in s.of("AWS::IAM::Role"):
        inline = sum(size(p["PolicyDocument"]) for p in listed(role.get("Policies")))
        if inline > 10240 or size(role["AssumeRolePolicyDocument"]) > 2048:
            yield id, f"its policies can have {inline} characters"


@rule("policy-names", "no two policies in a role have one name", "IAM/latest/APIReference/API_PutRolePolicy.html")
def policy_names(s):
    for id, role in s.of("AWS::IAM::Role"):
        policies = [p["PolicyName"] for p in listed(role.get("Policies"))]
        if len(set(policies)) != len(policies):
            yield id, "two of its policies have one name"


@rule("template-limits", "a template has 500 resources, 200 parameters, 200 outputs and 200 mappings, and 1 MB at most", "AWSCloudFormation/latest/UserGuide/cloudformation-limits.html")
def template_limits(s):
    for section, most in (("Resources", 500), ("Parameters", 200), ("Outputs", 200), ("Mappings", 200)):
        if len(s.raw.get(section, {})) > most:
            yield section, f"it has {len(s.raw[section])} entries"
    if len(json.dumps(s.raw)) > 1_000_000:
        yield "template", "it is over 1 MB"
    if len(s.raw.get("Description", "")) > 1024:
        yield "Description", "it has over 1,024 characters"
