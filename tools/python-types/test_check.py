"""The checks refuse what they are there for."""

import copy
import unittest

import check

GOOD = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "line", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "line", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
    {"role": "tool", "tool_call_id": "c2", "content": "Tool execution cancelled"},
    {"role": "assistant", "content": "Cancelled by user"},
    {"role": "user", "content": "more"},
]


class Check(unittest.TestCase):
    def refused(self, change):
        messages = copy.deepcopy(GOOD)
        change(messages)
        self.assertNotEqual(check.faults(messages), [])

    def test_good(self):
        self.assertEqual(check.faults(GOOD), [])

    def test_dangling_call(self):
        self.refused(lambda m: m.pop(3))

    def test_dangling_call_at_the_end(self):
        with self.assertRaises(ValueError):
            check.check_pairs(GOOD[:3])

    def test_two_results(self):
        self.refused(lambda m: m.insert(3, m[2]))

    def test_result_of_no_call(self):
        self.refused(lambda m: m[2].update(tool_call_id="c9"))

    def test_call_twice(self):
        self.refused(lambda m: m[1]["tool_calls"].append(m[1]["tool_calls"][0]))

    def types_refused(self, adapter, messages):
        with self.assertRaises(check.ValidationError):
            check.check_types(adapter, messages)

    def test_types_of_openai(self):
        for change in (
            lambda m: m[0].update(role="person"),
            lambda m: m[0].pop("content"),
            lambda m: m[2].pop("tool_call_id"),
            lambda m: m[1]["tool_calls"][0].pop("id"),
            lambda m: m[1]["tool_calls"][1]["function"].pop("arguments"),
            lambda m: m[4].update(unknown=1),
        ):
            messages = copy.deepcopy(GOOD)
            change(messages)
            self.types_refused(check.OPENAI, messages)

    def test_types_of_anthropic(self):
        for change in (
            lambda m: m[0].update(role="tool"),
            lambda m: m[1]["content"][0].pop("id"),
            lambda m: m[2]["content"][0].pop("tool_use_id"),
            lambda m: m[2]["content"][0].update(unknown=1),
        ):
            messages = check.to_anthropic(copy.deepcopy(GOOD))
            change(messages)
            self.types_refused(check.ANTHROPIC, messages)


if __name__ == "__main__":
    unittest.main()
