// Package tool holds typed tools: what one is, how its arguments are checked, what it may do while it runs.
//
// [Define] makes a [Tool] of a Go function; its argument schema is inferred from
// the input struct. The struct's json tags name the properties, a field without
// omitempty or omitzero is required, a jsonschema tag is the description. A
// [Call] is what the function is given: identity, custom state, events, [Once]
// for what must not happen twice, and Ask for what a person must say. Package tooltest
// runs a tool in a test.
//
// Nothing here decides when a tool runs or whether it runs again: the engine does, by
// the tool's [Effect].
package tool
