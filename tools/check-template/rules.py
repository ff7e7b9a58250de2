"""What a rule is, and what several rules ask of a scene."""

import fnmatch

AWS = "https://docs.aws.amazon.com/"
RULES = {}


class Rule:
    def __init__(self, id, says, source, check):
        self.id, self.says, self.source, self.check = id, says, AWS + source, check


def rule(id, says, source):
    """Makes a rule of a function that yields (logical id, what is wrong) of a scene.
    source is the page of AWS's documentation that asks for it."""
    def register(check):
        assert id not in RULES, id
        RULES[id] = Rule(id, says, source, check)
        return check
    return register


def listed(v):
    return v if isinstance(v, list) else [] if v is None else [v]


def statements(scene, function):
    """What the role of a function (its properties) allows: pairs of actions and
    resources, from the policies that are in the role itself. Others may come after
    the function and what calls it."""
    _, role = scene.named(function.get("Role"), "AWS::IAM::Role")
    for p in listed((role or {}).get("Policies")):
        for s in listed(p["PolicyDocument"]["Statement"]):
            if s["Effect"] == "Allow":
                yield listed(s["Action"]), listed(s["Resource"])


def may(scene, function, action, resource):
    """Whether a function may do that to a resource."""
    return any(any(fnmatch.fnmatchcase(action, a) for a in actions) and any(fnmatch.fnmatchcase(resource, r) for r in resources)
               for actions, resources in statements(scene, function))


def consumers(scene):
    """Each mapping of a queue: (id, mapping, queue's id, queue, function's id, function)."""
    for id, m in scene.of("AWS::Lambda::EventSourceMapping"):
        queue_id, queue = scene.named(m.get("EventSourceArn"), "AWS::SQS::Queue")
        function_id, function = scene.named(m.get("FunctionName"), "AWS::Lambda::Function")
        if queue and function:
            yield id, m, queue_id, queue, function_id, function


def violations(scenes, only=None):
    """What is wrong, each once, with the first scene it was seen in."""
    seen = {}
    for scene in scenes:
        for r in RULES.values():
            if only and r.id not in only:
                continue
            for id, what in r.check(scene):
                seen.setdefault((r.id, id, what), scene.name)
    return [(*key, scene) for key, scene in seen.items()]
