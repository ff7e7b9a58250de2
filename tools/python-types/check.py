"""Holds message lists to the types of the official Python SDKs.

Standard input: {"name": [messages of OpenAI's Chat Completions], ...}. Each list must validate as
OpenAI's message params and, translated, as Anthropic's; each call must have exactly one result,
before anybody else speaks. The exit code is 1 if one does not, with a line for each.
"""

import json
import sys
from collections.abc import Iterator, Mapping

from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from pydantic import ConfigDict, TypeAdapter, ValidationError

STRICT = ConfigDict(extra="forbid")
OPENAI = TypeAdapter(list[ChatCompletionMessageParam], config=STRICT)
ANTHROPIC = TypeAdapter(list[MessageParam], config=STRICT)


def consume(value):
    """Walks through a value: pydantic validates an Iterable only while it is read."""
    if isinstance(value, Mapping):
        for one in value.values():
            consume(one)
    elif isinstance(value, (list, tuple, Iterator)) or type(value).__name__ == "ValidatorIterator":
        for one in value:
            consume(one)


def check_types(adapter, messages):
    consume(adapter.validate_python(messages, strict=False))


def check_pairs(messages):
    """Each call has exactly one result, in the messages that follow its own."""
    open_calls = set()
    seen = set()
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            call = message["tool_call_id"]
            if call not in open_calls:
                raise ValueError(f"message {number}: a result of {call}, which is not open")
            open_calls.remove(call)
            continue
        if open_calls:
            raise ValueError(f"message {number}: no result of {sorted(open_calls)} before it")
        for call in message.get("tool_calls") or []:
            if call["id"] in seen:
                raise ValueError(f"message {number}: the call {call['id']} is there twice")
            seen.add(call["id"])
            open_calls.add(call["id"])
    if open_calls:
        raise ValueError(f"no result of {sorted(open_calls)}")


def to_anthropic(messages):
    """The same conversation in Anthropic's words: results are blocks of the user's next message."""
    out = []

    def add(role, *blocks):
        if out and out[-1]["role"] == role:
            out[-1]["content"] += blocks
        else:
            out.append({"role": role, "content": list(blocks)})

    for message in messages:
        if message["role"] == "tool":
            add("user", {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]})
            continue
        if message.get("content"):
            add(message["role"], {"type": "text", "text": message["content"]})
        for call in message.get("tool_calls") or []:
            function = call["function"]
            add(message["role"], {"type": "tool_use", "id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])})
    return out


def faults(messages):
    """All that is wrong with a list of OpenAI's messages."""
    found = []
    for check in (
        lambda: check_types(OPENAI, messages),
        lambda: check_pairs(messages),
        lambda: check_types(ANTHROPIC, to_anthropic(messages)),
    ):
        try:
            check()
        except (ValidationError, ValueError, KeyError, TypeError) as fault:
            found.append(str(fault))
    return found


def main():
    lists = json.load(sys.stdin)
    bad = False
    for name, messages in lists.items():
        for fault in faults(messages):
            bad = True
            print(f"{name}: {fault}")
    if not lists:
        sys.exit("there is no list of messages")
    print(f"{len(lists)} lists of messages are checked")
    sys.exit(bad)


if __name__ == "__main__":
    main()
