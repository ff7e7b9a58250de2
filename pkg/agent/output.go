package agent

import (
	"context"
	"encoding/json"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// FinishTool is the tool whose arguments become the output of a task. The
// registry adds it to every agent with an [Output].
const FinishTool = "__finish__"

// Output says what form the output of an agent's tasks has.
type Output struct {
	schema json.RawMessage
	err    error
}

// OutputOf returns an output whose schema is inferred from T, an object at its
// top. It never panics: a mistake is told by [NewRegistry].
func OutputOf[T any]() *Output {
	schema, err := tool.SchemaOf[T]()
	return &Output{schema: schema, err: err}
}

// OutputSchema returns an output with a JSON Schema written by hand, an object
// at its top. A mistake is told by [NewRegistry].
func OutputSchema(schema json.RawMessage) *Output {
	return &Output{schema: schema, err: finishTool(schema).Err()}
}

// Schema returns the JSON Schema of the output.
func (o *Output) Schema() json.RawMessage {
	if o == nil {
		return nil
	}
	return append(json.RawMessage(nil), o.schema...)
}

// finishTool validates the output and hands it through as it was written.
func finishTool(schema json.RawMessage) tool.Tool {
	if schema == nil {
		schema = json.RawMessage(`null`)
	}
	return tool.Define(tool.Spec[json.RawMessage]{
		Name:        FinishTool,
		Description: "Finish the task. The arguments are the result of the task: call this once, when everything is done.",
		Effect:      session.ReadOnly,
		Finish:      true,
		Schema:      schema,
	}, func(_ context.Context, _ *tool.Call, in json.RawMessage) (json.RawMessage, error) { return in, nil })
}
