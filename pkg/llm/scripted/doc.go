// Package scripted is a model that says what it was told to say.
//
// [New] answers from a list, [Func] from a Go function, and [Model] from a
// script that a user message holds: the model of the lab agent, with which
// everything can be tried without a network. None of them keeps state between
// requests. What comes next is computed from the conversation, so a request that
// is delivered twice is answered the same twice.
//
// A script is a YAML list. Each item is one reply of the model:
//
//   - call: echo                  # one tool call
//     with: {text: hello}
//   - text: two at once           # text beside calls
//     calls:                      # several calls in one reply
//   - {call: append_line, with: {path: out.txt, text: a}}
//   - {call: add_note, with: {text: b}}
//   - repeat: 100                 # this item, so many times
//     call: echo
//     with: {size: 1024}
//   - stream: a long text         # text in deltas of a few words; ends the turn
//     every: 50ms
//   - fail: rate_limited          # the model call fails with this class of error
//     after: 2s                   # and asks to be left alone for so long
//   - need: which region?         # a question to a person; the turn waits
//   - say: done                   # text; ends the turn
//
// Any item may have "think": reasoning that comes before the rest. After its
// last item a script says "done".
package scripted
