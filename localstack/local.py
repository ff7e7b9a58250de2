"""What localstack/up leaves for localstack/down: which local AWS runs, and as what."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse

import ministack

ENDS_WITHIN = 10  # seconds until what was asked to end is killed


def address():
    url = os.environ.get("ADJOURN_LOCAL_AWS") or "http://127.0.0.1:4566"
    try:
        parsed = urllib.parse.urlsplit(url)
        good = parsed.scheme == "http" and parsed.hostname in ("127.0.0.1", "localhost") and parsed.port and parsed.path in ("", "/")
    except ValueError:
        good = False
    if not good:
        sys.exit(f"localstack: ADJOURN_LOCAL_AWS={url}: use http://127.0.0.1:PORT")
    return parsed.port


PORT = address()
URL = f"http://127.0.0.1:{PORT}"
STATE = ministack.TOOLS / f"aws-{PORT}"
NOTE = STATE / "running"  # the kind and, for MiniStack, its process


def files():
    """An empty folder for MiniStack's files."""
    folder = STATE / "files"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def remember(kind, pid):
    STATE.mkdir(parents=True, exist_ok=True)
    NOTE.write_text(f"{kind} {pid}\n")


def remembered():
    """What was started here, ("", 0) if nothing."""
    try:
        kind, pid = NOTE.read_text().split()
        return kind, int(pid)
    except (OSError, ValueError):
        return "", 0


def forget():
    NOTE.unlink(missing_ok=True)
    shutil.rmtree(STATE / "files", ignore_errors=True)


def ours(pid):
    """Whether that process is the MiniStack of this checkout on this port: a number may
    belong to another one by now."""
    if pid <= 1:
        return False
    proc = pathlib.Path("/proc") / str(pid)
    try:
        command = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        if os.readlink(proc / "cwd") != str(STATE.resolve()):
            return False
    except OSError:
        if proc.parent.joinpath("self").exists():
            return False
        command = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True).stdout
    return str(ministack.PROGRAM) in command


def end(pid):
    """Ends MiniStack with the functions it runs."""
    for wish in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, wish)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + ENDS_WITHIN
        while ours(pid) and time.monotonic() < deadline:
            time.sleep(0.05)


def compose_command(*args):
    return ["docker", "compose", "--file", str(ministack.HERE / "compose.yaml"), "--project-name", f"adjourn-aws-{PORT}", *args]


def compose(*args):
    return subprocess.run(compose_command(*args), env=os.environ | {"ADJOURN_LOCALSTACK_PORT": str(PORT)})
