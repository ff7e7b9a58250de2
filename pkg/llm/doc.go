// Package llm holds the types of a conversation with a language model.
//
// A [Message] is made of parts. A [Model] is asked with a [Request] and answers
// with a stream of [Event] values, which [Collect] folds into a [Reply]. What a
// provider needs to see again verbatim (signatures, encrypted reasoning) travels
// in [Part.Opaque]. Models are opened by github.com/adjourn/adjourn/pkg/llm/openai,
// github.com/adjourn/adjourn/pkg/llm/anthropic and, for tests,
// github.com/adjourn/adjourn/pkg/llm/scripted.
package llm
