package journal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func nested(n int) json.RawMessage {
	return json.RawMessage(strings.Repeat(`[`, n/2) + strings.Repeat(`{"a":`, n-n/2) + `"]}\\\"[["` + strings.Repeat(`}`, n-n/2) + strings.Repeat(`]`, n/2))
}

func TestCheckValue(t *testing.T) {
	t.Parallel()
	for _, good := range []string{`null`, `0`, `""`, `[]`, `{"a":[1,{"b":"]"}]}`, `"\\"`, `["\"", "["]`, string(nested(journal.MaxNesting))} {
		require.NoError(t, journal.CheckValue(json.RawMessage(good)), good)
	}
	for name, bad := range map[string]json.RawMessage{
		"nothing": nil, "half": json.RawMessage(`{"a":`), "two": json.RawMessage(`1 2`), "not UTF-8": json.RawMessage("\"\xff\""),
		"too deep": nested(journal.MaxNesting + 1), "far too deep": nested(20000),
	} {
		require.ErrorIs(t, journal.CheckValue(bad), journal.ErrUnfitValue, name)
	}
}

// Brackets in a text nest nothing, wherever the text ends.
func TestCheckValue_passes_over_texts(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", journal.MaxNesting+1)
	for _, quoted := range []string{deep, `\"` + deep, `\\\"` + deep, deep + `\\`, `\"\"` + deep + `\"`, `\\\\\"` + deep + `\\\"`, `\n` + deep + `\t\\`} {
		text := `["` + quoted + `"]`
		require.NoError(t, journal.CheckValue(json.RawMessage(text)), "%.20q", text)
		text = `{"` + quoted + `":"` + quoted + `","after":` + deep + strings.Repeat("]", journal.MaxNesting+1) + `}`
		require.ErrorIs(t, journal.CheckValue(json.RawMessage(text)), journal.ErrUnfitValue, "%.20q", text)
	}
}

// TestCheckValue_can_be_read_again: what passes can be kept in an entry.
func TestCheckValue_can_be_read_again(t *testing.T) {
	t.Parallel()
	e := journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindCompleted, Output: nested(journal.MaxNesting)}
	raw, err := journal.Encode(&e)
	require.NoError(t, err)
	_, err = journal.Decode(raw)
	require.NoError(t, err)
}

// TestEncode_refuses_what_could_not_be_read_again: whoever forgot to check a value
// gets an error, not a session that is lost.
func TestEncode_refuses_what_could_not_be_read_again(t *testing.T) {
	t.Parallel()
	e := journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindCompleted, Output: nested(10_000)}
	_, err := journal.Encode(&e)
	require.ErrorIs(t, err, journal.ErrUnfitValue)
}
