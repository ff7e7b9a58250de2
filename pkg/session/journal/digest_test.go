package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestDigest_is_canonical(t *testing.T) {
	t.Parallel()
	want := journal.Digest(json.RawMessage(`{"a":1,"b":{"c":[1,2.50],"d":null}}`))
	for _, same := range []string{
		`{"b":{"d":null,"c":[1,2.50]},"a":1}`, " {\n\"a\": 1, \"b\" : {\"c\":[ 1 ,2.50],\"d\":null } }\n", `{"\u0061":1,"b":{"c":[1,2.50],"d":null}}`,
	} {
		require.Equal(t, want, journal.Digest(json.RawMessage(same)), same)
	}
	seen := map[string]string{}
	for _, text := range []string{
		`{"a":1,"b":{"c":[1,2.50],"d":null}}`, `{"a":1,"b":{"c":[2.50,1],"d":null}}`, `{"a":"1"}`, `{"a":1}`, `{}`, `[]`, `null`, `""`, ``, `{`, `{} {}`, `{}x`,
		`{"n":12345678901234567890}`, `{"n":12345678901234567891}`,
	} {
		d := journal.Digest(json.RawMessage(text))
		require.Len(t, d, 43)
		require.Empty(t, seen[d], "%q and %q are different", text, seen[d])
		seen[d] = fmt.Sprintf("(%s)", text)
	}
}

// digestOf is the digest by its definition: what is valid is read and written again.
func digestOf(tb testing.TB, raw []byte) string {
	tb.Helper()
	if json.Valid(raw) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var v any
		require.NoError(tb, decoder.Decode(&v))
		var err error
		raw, err = json.Marshal(v)
		require.NoError(tb, err)
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// digested are texts on both sides of what is canonical as it stands.
var digested = []string{
	``, ` `, `{`, `{}`, `{ }`, `[]`, `[ ]`, `null`, ` null`, `null `, `1.50e+3`, `-0`, `1 2`, `"a"`, `"a" `, `[1,2]`, `[1, 2]`, `[1 ,2]`, `[[],[{}]]`,
	`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":1,"a":2}`, `{"a":1, "b":2}`, `{"a": 1}`, `{"a" :1}`, `{"a":1 }`, `{"":0,"a":1}`, `{"":0,"":1}`, `{"a":1,"":0}`,
	`{"A":1,"a":2}`, `{"a":1,"ab":2}`, `{"ab":1,"a":2}`, `{"é":1,"z":2}`, `{"z":1,"é":2}`, `{"\u0061":1}`, `{"a\"":1}`, `{"a":{"c":1,"b":2}}`, `[{"b":1,"a":2}]`,
	`"\""`, `"\\"`, `"\/"`, `"\b\f\n\r\t"`, `"\u000a"`, `"\u0001"`, `"\u001F"`, `"\u0041"`, `"\ud83d\ude00"`, `"\ud83d"`, `"<"`, `">"`, `"&"`, `"\u003c"`, "\"\x7f\"",
	`"é😀"`, "\"\u2028\"", "\"\u2029\"", "\"\ufffd\"", "\"\xff\"", "\"\xed\xa0\x80\"", "{\"\xff\":1}", "\t[]", "[]\n",
}

func TestDigest_is_that_of_what_the_text_means(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)
	for _, text := range append(digested, deep, "["+deep+"]", "[["+deep+"]]") {
		require.Equal(t, digestOf(t, []byte(text)), journal.Digest(json.RawMessage(text)), "%.60q", text)
	}
}

// What most models write costs little more than a look at it. It is compared with the
// same text in another form, for the race detector adds allocations of its own to both.
func TestDigest_of_canonical_arguments_is_not_decoded(t *testing.T) {
	allocs := func(arguments string) float64 {
		return testing.AllocsPerRun(100, func() { journal.Digest(json.RawMessage(arguments)) })
	}
	require.Less(t, 4*allocs(`{"amount":250,"items":["a\n",{"k":null}],"order":"A-3 é"}`), allocs(`{ "amount":250,"items":["a\n",{"k":null}],"order":"A-3 é"}`))
}

func FuzzDigest(f *testing.F) {
	for _, text := range digested {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		require.Equal(t, digestOf(t, raw), journal.Digest(raw))
	})
}
