"""The template as AWS would see it: SAM's transform applied, and all of
CloudFormation's functions computed for one choice of parameters, a scene.

What only AWS knows stands in angle brackets: <Steps> is what Ref gives of a
resource, <Steps.Arn> what GetAtt gives.
"""

import copy
import json
import logging
import os
import pathlib
import re

from boto3.session import Session
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"<([A-Za-z0-9]+)(?:\.([A-Za-z0-9.]+))?>")
NOTHING = object()
# A parameter's value may have 4,096 bytes, a stack's name 128 characters.
LONGEST_PARAMETER, LONGEST_STACK = 4096, 128
PSEUDO = {
    "AWS::AccountId": "123456789012", "AWS::Partition": "aws", "AWS::Region": "us-east-1",
    "AWS::StackName": "adjourn", "AWS::URLSuffix": "amazonaws.com", "AWS::NoValue": NOTHING,
}
# What is tried for a parameter that is empty by default: the first that its pattern takes.
ACCOUNT = "us-east-1:123456789012"
SAMPLES = [
    "https://issuer.example.com/tenant", f"arn:aws:kms:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555",
    f"arn:aws:sns:{ACCOUNT}:alarms", f"arn:aws:secretsmanager:{ACCOUNT}:secret:models-AbCdEf", "openai:gpt-5-mini", "sample", '{"agent": "a"}', "C024BE91L",
    '{"default": "prompt"}', '{"T024BE7LD/U2147483697":"ana"}',
]

logging.getLogger("samtranslator").setLevel(logging.ERROR)


def read(path=ROOT / "template.yaml"):
    return yaml_parse(pathlib.Path(path).read_text())


def transform(template):
    """Applies SAM's transform, and leaves parameters where they are referred to."""
    template = copy.deepcopy(template)
    parameters = template.get("Parameters", {})
    bare = {name: {k: v for k, v in p.items() if k != "Default"} for name, p in parameters.items()}
    template["Parameters"] = bare
    for r in template["Resources"].values():
        if r["Type"] == "AWS::Serverless::Function":
            r.setdefault("Properties", {})["CodeUri"] = "s3://bucket/key"
    globals_ = template.get("Globals", {}).get("Function", {})
    globals_.pop("CodeUri", None)
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    done = Translator(managed_policy_map={}, sam_parser=Parser(), boto_session=Session(region_name="us-east-1")).translate(
        sam_template=template, parameter_values={}, passthrough_metadata=True)
    done = json.loads(json.dumps(done))
    done["Parameters"] = parameters
    return done


def sample(p):
    """A value for a parameter whose default is none."""
    pattern = p.get("AllowedPattern", ".*")
    fitting = [s for s in SAMPLES if re.fullmatch(pattern, s) and len(s) <= p.get("MaxLength", LONGEST_PARAMETER)]
    return fitting[0] if fitting else ""


# Callers come in one of these ways, and the template's Rules refuse a mixture.
CALLERS = ("JwtIssuer", "JwtAudience", "FixedTenant", "IamTenant")
WAYS = {
    "tokens": {"AllowUnauthenticated": "false", "FixedTenant": "", "IamTenant": ""},
    "one tenant": {"AllowUnauthenticated": "false", "TenantClaim": "tenant", "IamTenant": ""},
    "IAM": {"AllowUnauthenticated": "false", "JwtIssuer": "", "JwtAudience": "", "FixedTenant": ""},
    "everybody": {"AllowUnauthenticated": "true"} | dict.fromkeys(CALLERS, ""),
}
FIRST = "first deployment"
# What the template's Rules want beside a parameter that is given.
BESIDE = {"WebhookUrl": ["WebhookSecret"], "SlackSecret": ["SlackChannel"], "SlackPeople": ["SlackSecret", "SlackChannel"]}


def whole(p):
    """The ends of a parameter that takes whole numbers as text, or nothing: a pattern
    has no other way to say them."""
    if p["Type"] != "String" or "AllowedPattern" not in p or not str(p.get("Default", "")).isdigit():
        return []
    taken = [str(n) for n in range(10_001) if re.fullmatch(p["AllowedPattern"], str(n))]
    return [taken[0], taken[-1]] if taken else []


def ends(p):
    """The values of a parameter that are tried one by one: all that are allowed, or
    its ends, or one where it is empty by default."""
    if "AllowedValues" in p:
        return [str(v) for v in p["AllowedValues"]]
    if p["Type"] == "Number":
        return [str(p.get("MinValue", 0)), str(p.get("MaxValue", 1_000_000))]
    return whole(p) or ([sample(p)] if p.get("Default") == "" and sample(p) else [])


def choices(parameters):
    """Names of scenes, with the parameters each is given."""
    plain = {name: str(p.get("Default", sample(p))) for name, p in parameters.items()}
    yield "defaults", plain
    callers = {name: sample(parameters[name]) for name in CALLERS if name in parameters}
    given, least, most, longest = {}, {}, {}, {}
    for name, p in parameters.items():
        values = ends(p)
        if "AllowedValues" in p or p["Type"] == "Number" or whole(p):
            on = "true" if "true" in values else values[-1]
            least[name], most[name] = values[0] if on != "true" else "false", on
            # Numbers that are 0 by default switch something off.
            given[name] = "100" if p["Type"] == "Number" and plain[name] == "0" else plain[name]
            longest[name] = values[-1]
        else:
            given[name] = most[name] = sample(p) or plain[name]
            longest[name] = "x" * p.get("MaxLength", LONGEST_PARAMETER)
    for way, fixed in WAYS.items():
        fixed = {n: v for n, v in fixed.items() if n in parameters}
        base = plain | callers | fixed
        yield FIRST if way == "tokens" else f"first deployment, {way}", base
        yield f"everything given, {way}", base | given | fixed
        yield f"everything at its least, {way}", base | least | fixed
        yield f"everything at its most, {way}", base | most | fixed
        yield f"everything at its longest, {way}", base | longest | fixed | {"AWS::StackName": "s" * LONGEST_STACK}
        if way == "tokens":
            for n, p in parameters.items():
                if n not in fixed:
                    for v in ends(p):
                        beside = {other: sample(parameters[other]) for other in BESIDE.get(n, ()) if v}
                        yield f"{n}={v}", base | beside | {n: v}


class Refused(Exception):
    """The template's own Rules do not let these parameters through."""


class Scene:
    """One choice of parameters. resources has those that are made, with their
    properties computed; raw is the transformed template."""

    def __init__(self, name, transformed, given):
        self.name, self.raw = name, transformed
        self.parameters = {n: given.get(n, str(p.get("Default", ""))) for n, p in transformed.get("Parameters", {}).items()}
        self.pseudo = PSEUDO | {n: v for n, v in given.items() if n.startswith("AWS::")}
        for rule in transformed.get("Rules", {}).values():
            if "RuleCondition" in rule and not self.holds(rule["RuleCondition"]):
                continue
            for a in rule["Assertions"]:
                if not self.holds(a["Assert"]):
                    raise Refused(self.value(a.get("AssertDescription", "")))
        self.resources = {}
        for id, r in transformed["Resources"].items():
            if "Condition" not in r or self.holds({"Condition": r["Condition"]}):
                self.resources[id] = {k: v for k, v in r.items() if k != "Properties"} | {"Properties": self.value(r.get("Properties", {}))}

    def of(self, type_):
        """Each resource of a type, with its properties."""
        return [(id, r["Properties"]) for id, r in self.resources.items() if r["Type"] == type_]

    def named(self, value, type_):
        """The resource of a type that a reference names, with its properties."""
        m = TOKEN.match(value) if isinstance(value, str) else None
        if m and self.resources.get(m[1], {}).get("Type") == type_:
            return m[1], self.resources[m[1]]["Properties"]
        return None, None

    def holds(self, c):
        if not isinstance(c, dict):
            return str(c).lower() == "true"
        (fn, args), = c.items()
        if fn == "Condition":
            return self.holds(self.raw["Conditions"][args])
        if fn == "Fn::Equals":
            return str(self.value(args[0])) == str(self.value(args[1]))
        if fn == "Fn::Not":
            return not self.holds(args[0])
        if fn == "Fn::And":
            return all(self.holds(a) for a in args)
        if fn == "Fn::Or":
            return any(self.holds(a) for a in args)
        raise ValueError(f"no condition: {fn}")

    def value(self, v):
        if isinstance(v, list):
            return [e for e in (self.value(e) for e in v) if e is not NOTHING]
        if not isinstance(v, dict):
            return v
        if len(v) == 1:
            (fn, args), = v.items()
            if fn == "Ref":
                return self.ref(args)
            if fn == "Condition" and isinstance(args, str) and args in self.raw.get("Conditions", {}):
                return self.holds(v)
            if fn.startswith("Fn::"):
                return self.call(fn, args)
        return {k: e for k, e in ((k, self.value(e)) for k, e in v.items()) if e is not NOTHING}

    def ref(self, name):
        if name in self.pseudo:
            return self.pseudo[name]
        if name in self.parameters:
            p = self.raw["Parameters"][name]
            return int(self.parameters[name]) if p["Type"] == "Number" else self.parameters[name]
        return f"<{name}>"

    def call(self, fn, args):
        if fn == "Fn::If":
            return self.value(args[1] if self.holds({"Condition": args[0]}) else args[2])
        if fn == "Fn::GetAtt":
            return f"<{args if isinstance(args, str) else '.'.join(args)}>"
        if fn == "Fn::Sub":
            text, names = (args, {}) if isinstance(args, str) else (args[0], self.value(args[1]))
            def put(m):
                name = m[1]
                if name.startswith("!"):
                    return "${" + name[1:] + "}"
                if name in names:
                    return str(names[name])
                return f"<{name}>" if "." in name else str(self.ref(name))
            return re.sub(r"\$\{([^}]+)\}", put, text)
        args = self.value(args)
        if fn == "Fn::Split":
            return args[1].split(args[0])
        if fn == "Fn::Join":
            return args[0].join(str(a) for a in args[1])
        if fn == "Fn::Select":
            return args[1][int(args[0])]
        if fn == "Fn::FindInMap":
            return self.raw["Mappings"][args[0]][str(args[1])][args[2]]
        raise ValueError(f"no function: {fn}")


def scenes(template, only=None):
    """All scenes that the template's Rules let through, and the names of the others."""
    transformed = transform(template)
    through, refused = [], []
    for name, given in choices(transformed.get("Parameters", {})):
        if only and name not in only:
            continue
        try:
            through.append(Scene(name, transformed, given))
        except Refused:
            refused.append(name)
    return through, refused
