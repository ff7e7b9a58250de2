// Package llm holds the words of a conversation with a language model.
//
// A [Message] is made of parts. A [Model] is asked with a [Request] and answers
// with a stream of [Event] values, which [Collect] folds into a [Reply]. What a
// provider needs to see again verbatim (signatures, encrypted reasoning) travels
// in [Part.Opaque]. Adapters live in rooms below this one: scripted, openai.
package llm
