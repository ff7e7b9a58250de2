package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// JSON that is none is the request's fault, with a key as without.
func TestRequest_key_with_bad_input_is_a_bad_request(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	a := fill(w.open(session.WaitApproval).Wait, yes())
	a.EditedInput = json.RawMessage(`{"text":`)
	_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
	_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a, IdempotencyKey: "k"})
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err), "%v", err)
}
