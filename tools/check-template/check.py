#!/usr/bin/env python3
"""Checks template.yaml without an account: against the schemas of CloudFormation's
providers, as cfn-lint ships them, and all of its rules; then against AWS's
documented limits and what one resource asks of another, in many choices of
parameters.

    make check-template                  the template
    make check-template ARGS=--list      what is known, with the pages it comes from
"""

import argparse
import importlib.metadata
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import api, chain, data, watch  # noqa: E401,F401 - each registers its rules
import scene
from rules import RULES, violations

# Schemas differ by Region: two large ones, two others, a young one.
REGIONS = ["us-east-1", "eu-west-1", "eu-central-1", "ap-southeast-2", "ap-southeast-7"]

# What cfn-lint says and is meant here otherwise: its rule, the resources ("" for the
# whole template), and why. An exception that nothing falls under is a finding.
EXCEPTIONS = [
    ("I4010", None, "asks for descriptions in Metadata, for machines; comments in template.yaml say it to people"),
    ("I3011", ["ApiLogs", "StartLogs", "EventLogs", "StepLogs", "ResumeLogs", "SubmitLogs", "QueryLogs", "SweepLogs", "NoticeLogs"],
     "logs go with their stack; what sessions are is in State and Blobs"),
    ("I3011", ["Steps", "DeadLetters", "FailedEvents", "Notices"], "messages say where to look; what is true is in State"),
    ("I3011", ["Live"], "deltas of steps in flight, on which nothing depends"),
]


def lint(transformed):
    """What cfn-lint finds: (its rule, logical id, what), once for all Regions."""
    from cfnlint.api import lint as run
    from cfnlint.config import ManualArgs

    matches = run(json.dumps(transformed, indent=1), regions=REGIONS, config=ManualArgs(
        regions=REGIONS, include_checks=["I", "W", "E"], include_experimental=True))
    found = []
    for m in matches:
        path = [str(p) for p in (getattr(m, "path", None) or [])]
        id = path[1] if path[:1] == ["Resources"] and len(path) > 1 else path[0] if path else "template"
        found.append((m.rule.id, id, m.message))
    return sorted(set(found))


def excepted(found, exceptions):
    """What is left of the findings, and the exceptions that nothing fell under."""
    left, used = [], set()
    for f in found:
        hits = [n for n, (rule, ids, _) in enumerate(exceptions) if f[0] == rule and (ids is None or f[1] in ids)]
        used |= {(n, f[1]) for n in hits}
        if not hits:
            left.append(f)
    idle = []
    for n, (rule, ids, _) in enumerate(exceptions):
        idle += [(rule, id or "template") for id in (ids or [None]) if not any(u == n and (id is None or id == of) for u, of in used)]
    return left, idle


def listing():
    print(f"cfn-lint {importlib.metadata.version('cfn-lint')}, all rules, schemas of {', '.join(REGIONS)}; excepted:")
    for rule, ids, why in EXCEPTIONS:
        print(f"  {rule} of {', '.join(ids) if ids else 'all'}: {why}")
    print(f"\n{len(RULES)} rules of documented limits and of relations between resources:")
    for r in sorted(RULES.values(), key=lambda r: r.id):
        print(f"  {r.id}\n    {r.says}\n    {r.source}")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("template", nargs="?", default=scene.ROOT / "template.yaml", type=pathlib.Path)
    words.add_argument("--list", action="store_true", help="print what is known")
    given = words.parse_args()
    if given.list:
        listing()
        return 0
    template = scene.read(given.template)
    left, idle = excepted(lint(scene.transform(template)), EXCEPTIONS)
    through, refused = scene.scenes(template)
    wrong = violations(through)
    for rule, id, what in left:
        print(f"{given.template.name}: {id}: {what} [cfn-lint {rule}]")
    for rule, id in idle:
        print(f"tools/check-template/check.py: the exception {rule} of {id} is for nothing: take it away")
    for rule, id, what, where in wrong:
        print(f"{given.template.name}: {id}: {what} (with {where})\n  {rule}: {RULES[rule].says}\n  {RULES[rule].source}")
    if left or idle or wrong:
        return 1
    print(f"{given.template.name}: cfn-lint {importlib.metadata.version('cfn-lint')} in {len(REGIONS)} Regions, and {len(RULES)} rules "
          f"in {len(through)} choices of parameters (its own Rules refuse: {', '.join(refused) or 'none'}): nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
