#!/usr/bin/env python3
"""Says whether the functions that sam build has built fit the machines they are
deployed to. Nothing else does: of a program of another architecture AWS tells at
its first invocation (Runtime.InvalidEntrypoint).

    tools/check-template/built.py arm64 [.aws-sam/build]
"""

import pathlib
import struct
import sys

# e_machine of the ELF header.
MACHINES = {0x3E: "x86_64", 0xB7: "arm64"}


def architecture(program):
    """The architecture of a program for Linux, or what it is instead."""
    head = program.read_bytes()[:20] if program.is_file() else b""
    if len(head) < 20 or head[:4] != b"\x7fELF" or head[4:6] != b"\x02\x01":
        return "no program for 64-bit Linux" if head else "missing"
    machine, = struct.unpack("<H", head[18:20])
    return MACHINES.get(machine, f"of machine {machine}")


def faults(wanted, build):
    """What is wrong with a build, one line for each function."""
    functions = sorted(p for p in build.iterdir() if p.is_dir()) if build.is_dir() else []
    if not functions:
        return [f"{build}: nothing is built there: run sam build"]
    return [f"{f / 'bootstrap'}: {found}, and the functions are deployed as {wanted}: LAMBDA_ARCH={wanted} sam build"
            for f in functions if (found := architecture(f / "bootstrap")) != wanted]


def main(words):
    if len(words) not in (2, 3) or words[1] not in MACHINES.values():
        print(f"usage: {words[0]} arm64|x86_64 [build folder]", file=sys.stderr)
        return 2
    wrong = faults(words[1], pathlib.Path(words[2] if len(words) == 3 else ".aws-sam/build"))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
