"""How MiniStack is started here: on loopback, alone, with nobody's credentials."""

import os
import pathlib
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parent / ".tools"
PROGRAM = TOOLS / "ministack/bin/ministack"

# What an emulator must not inherit: the caller's account, endpoints and proxies,
# settings of a MiniStack or a Java of theirs, and of Adjourn: functions that run in
# it inherit what it has.
FOREIGN = (
    "ADJOURN_", "OPENAI_", "AWS_", "MINISTACK_", "LOCALSTACK_", "LAMBDA_", "DOCKER_",
    "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "GATEWAY_PORT", "EDGE_PORT", "PERSIST_STATE", "STATE_DIR", "USE_SSL", "SERVICES", "JAVA_TOOL_OPTIONS",
)

# They open nothing: an emulator takes any.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def clean_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}


def environment(port, folder, log_level):
    """The environment of a MiniStack on that port, whose files go into folder."""
    return clean_environment() | CREDENTIALS | {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",  # where functions find AWS
        "TMPDIR": str(folder),
        "S3_DATA_DIR": str(folder / "s3"),
        "LOG_LEVEL": log_level,
        # Not needed, and on ports that all of them would share.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # It would remove containers that it takes for its own.
        "DOCKER_HOST": "unix:///nonexistent",
    }


def status(url, within=2):
    """The status of a GET, 0 if nothing answers in HTTP within so many seconds."""
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=within) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        return answer.code
    except (OSError, ValueError):
        return 0


def ready(url):
    return status(url + "/_ministack/ready") == 200
