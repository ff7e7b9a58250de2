package jsonbody

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/refused"
)

// TestDecode: what is taken, is taken as it stands.
func TestDecode(t *testing.T) {
	t.Parallel()
	var submit client.SubmitRequest
	require.NoError(t, Decode([]byte("\n {\"kind\":\"client-tool-result\",\"result\":null,\"autoResume\":false,\"text\":\"\",\"selected\":[]} \r\n"), &submit))
	require.Equal(t, "null", string(submit.Result), "null is a result")
	require.NotNil(t, submit.Text, "so is an empty text")
	require.NotNil(t, submit.Selected, "and an empty selection")
	require.False(t, *submit.AutoResume)

	submit = client.SubmitRequest{}
	require.NoError(t, Decode([]byte(`{"kind":"x","text":null,"selected":null,"approved":null}`), &submit))
	require.Equal(t, client.SubmitRequest{Kind: "x"}, submit)

	var resume client.ResumeRequest
	require.NoError(t, Decode([]byte(`{"decisions":{"editedInput":{"c1-1":{"Any":{"any":1}},"c1-2":1e999}}}`), &resume))
	require.Equal(t, `1e999`, string(resume.Decisions.EditedInput["c1-2"]), "a number nobody can hold is still JSON")

	deep := strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1)
	require.NoError(t, Decode([]byte(`{"kind":"x","result":`+deep+`}`), &submit))
	require.ErrorContains(t, Decode([]byte(`{"kind":"x","result":[`+deep+`]}`), &submit), "deep")

	long := strings.Repeat("x", 10_000)
	err := Decode([]byte(`{"`+long+`":1}`), &submit)
	require.ErrorContains(t, err, "there is no field")
	require.Less(t, len(err.Error()), 500, "what is told back is not as long as one likes")
	err = Decode([]byte(`{"kind":"reply","select":["red"]}`), &submit)
	require.ErrorContains(t, err, `there is no field "select" here; the fields are waitId, kind, toolCallId, approvalId, id, approved, `+
		`reason, editedInput, standing, result, error, selected, text, message, verdict, autoResume`)
	err = Decode([]byte(`{"confirmation":{"approve":true}}`), &resume)
	require.ErrorContains(t, err, `there is no field "confirmation.approve" here; the fields are waitId, approved, reason, editedInput`)
}

// TestDecode_long: what a body costs grows with its bytes, not with the length of
// a name times that of the list below it.
func TestDecode_long(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	const n = 1 << 14
	body := []byte(`{"kind":"x","result":{"` + strings.Repeat("k", n) + `":[` + strings.Repeat("0,", n) + `0]}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, Decode(body, &client.SubmitRequest{}))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(n*n/4))
}

// FuzzDecode: a body is refused by name, or read so that writing it and reading
// it again gives the same.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"kind":"reply","selected":["a"],"text":""}`, `{"decisions":{"approve":["c"],"editedInput":{"c":{"a":[1,{"b":null}]}}}}`, `{"confirmation":{"approved":true}}`,
		`{"input":"x","input":"y"}`, `{"INPUT":"x"}`, "{\"input\":\"\xff\"}", `{"input":"\ud800"}`, `{"result":1e400}`, `[]`, `{"result":[[[[[]]]]]}`, ` `, `{"approved":"yes"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, into := range []any{&client.StartRequest{}, &client.SubmitRequest{}, &client.ResumeRequest{}} {
			err := Decode(raw, into)
			var refusal *refused.Error
			if err != nil {
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, codes.ClassInvalid, codes.Code(refusal.Code).Class())
				require.True(t, utf8.ValidString(refusal.Detail))
				continue
			}
			require.True(t, json.Valid(raw))
			written, err := json.Marshal(into)
			require.NoError(t, err)
			again := reflect.New(reflect.TypeOf(into).Elem()).Interface()
			require.NoError(t, Decode(written, again))
			twice, err := json.Marshal(again)
			require.NoError(t, err)
			require.True(t, bytes.Equal(written, twice))
		}
	})
}
