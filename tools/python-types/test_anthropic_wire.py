"""The checks refuse what they are there for."""

import json
import unittest

import anthropic_wire as wire

REQUEST = {
    "model": "m",
    "max_tokens": 9,
    "stream": True,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
}
START = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}


def stream(event, name=None):
    return f"event: {name or event['type']}\ndata: {json.dumps(event)}\n\n"


class Wire(unittest.TestCase):
    def test_requests(self):
        self.assertIsNone(wire.fault(wire.check_request, json.dumps(REQUEST)))
        for change in (
            {"max_tokens": None},
            {"colour": "red"},
            {"messages": [{"role": "god", "content": []}]},
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            {"tool_choice": {"type": "perhaps"}},
        ):
            self.assertIsNotNone(wire.fault(wire.check_request, json.dumps(REQUEST | change)), change)

    def test_streams(self):
        self.assertIsNone(wire.fault(wire.check_stream, stream(START) + stream({"type": "ping"})))
        for text in (
            stream(START, "content_block_stop"),
            stream(START | {"colour": "red"}),
            stream(START | {"content_block": {"type": "text"}}),
            stream({"type": "weather"}),
        ):
            self.assertIsNotNone(wire.fault(wire.check_stream, text), text)


if __name__ == "__main__":
    unittest.main()
