"""Holds the wire samples of pkg/llm/anthropic to the types of Anthropic's official Python SDK.

The argument is the folder of the samples: request_*.json are bodies that the adapter sends, and
stream_*.sse what it is answered. Each must have the form that the SDK gives it, and no field that the
SDK does not know. The exit code is 1 if one does not, with a line for each.
"""

import json
import pathlib
import sys

from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import BaseModel, TypeAdapter, ValidationError

from check import STRICT, consume

REQUEST = TypeAdapter(list[MessageCreateParamsStreaming], config=STRICT)
EVENT = TypeAdapter(RawMessageStreamEvent)
# Events that are no part of the SDK's type: it takes them out of the stream.
OUTSIDE = {"ping", "error"}


def unknown(value, path=""):
    """The fields of a value that its type does not have."""
    if isinstance(value, BaseModel):
        yield from (f"{path}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from unknown(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from unknown(one, f"{path}[{number}]")


def check_request(text):
    consume(REQUEST.validate_python([json.loads(text)], strict=False))


def check_stream(text):
    events = [event.split("\n") for event in text.strip().split("\n\n")]
    for number, (name, data) in enumerate(events):
        name, data = name.removeprefix("event: "), json.loads(data.removeprefix("data: "))
        if name != data["type"]:
            raise ValueError(f"event {number}: {name} holds a {data['type']}")
        if name in OUTSIDE:
            continue
        event = EVENT.validate_python(data)
        if event.type != name:
            raise ValueError(f"event {number}: a {name} is read as a {event.type}")
        fields = sorted(unknown(event, name))
        if fields:
            raise ValueError(f"event {number}: no such field: {', '.join(fields)}")


def fault(check, text):
    """What is wrong with a sample, None if nothing is."""
    try:
        check(text)
    except (ValidationError, ValueError, KeyError, TypeError) as wrong:
        return str(wrong)
    return None


def main():
    folder = pathlib.Path(sys.argv[1])
    bad = False
    counts = []
    for pattern, check in {"request_*.json": check_request, "stream_*.sse": check_stream}.items():
        files = sorted(folder.glob(pattern))
        counts.append(len(files))
        for file in files:
            wrong = fault(check, file.read_text(encoding="utf-8"))
            if wrong:
                bad = True
                print(f"{file.name}: {wrong}")
    if not all(counts):
        sys.exit(f"there are no samples in {folder}")
    print("{} requests and {} streams are checked".format(*counts))
    sys.exit(bad)


if __name__ == "__main__":
    main()
