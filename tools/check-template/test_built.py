"""What built.py says of builds that fit and of such that do not."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import built


def program(machine):
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, machine) + bytes(44)


class Built(unittest.TestCase):
    def faults(self, wanted, **functions):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "template.yaml").write_text("")
            for name, content in functions.items():
                (build / name).mkdir()
                if content is not None:
                    (build / name / "bootstrap").write_bytes(content)
            return built.faults(wanted, build)

    def test_what_fits(self):
        self.assertEqual(self.faults("arm64", Start=program(0xB7), Step=program(0xB7)), [])
        self.assertEqual(self.faults("x86_64", Start=program(0x3E)), [])

    def test_what_does_not(self):
        wrong = self.faults("arm64", Start=program(0xB7), Step=program(0x3E))
        self.assertEqual(len(wrong), 1)
        self.assertIn("x86_64, and the functions are deployed as arm64: LAMBDA_ARCH=arm64 sam build", wrong[0])
        for content, says in ((b"#!/bin/sh\n" * 9, "no program"), (None, "missing"), (program(0x28), "of machine 40")):
            self.assertIn(says, self.faults("arm64", Start=content)[0])

    def test_nothing_built(self):
        self.assertIn("sam build", self.faults("arm64")[0])
        self.assertEqual(built.main(["built.py", "arm"]), 2)

    def test_sam_build_builds_what_samconfig_deploys(self):
        makefile = pathlib.Path(built.__file__).resolve().parents[2] / "Makefile"
        for says, arch, more in (
            ('parameter_overrides = "Chain=\\"on\\" Architecture=\\"x86_64\\" Model=\\"m\\""', "amd64", {}),
            ('parameter_overrides = ["Architecture=x86_64", "Chain=on"]', "amd64", {}),
            ('Architecture = "x86_64"', "amd64", {}),
            ('Architecture = "x86_64"', "arm64", {"LAMBDA_ARCH": "arm64"}),
            ('Chain = "on"', "arm64", {}),
            (None, "arm64", {}),
        ):
            with self.subTest(says), tempfile.TemporaryDirectory() as folder:
                shutil.copy(makefile, folder)
                if says:
                    (pathlib.Path(folder) / "samconfig.toml").write_text(f"[default.deploy.parameters]\n{says}\n")
                env = {k: v for k, v in os.environ.items() if k not in ("LAMBDA_ARCH", "MAKEFLAGS", "MAKELEVEL")} | more
                done = subprocess.run(["make", "-n", "build-Start", "ARTIFACTS_DIR=out"], cwd=folder, env=env, text=True, capture_output=True, check=True)
                self.assertIn(f"GOARCH={arch} ", done.stdout)


if __name__ == "__main__":
    unittest.main()
