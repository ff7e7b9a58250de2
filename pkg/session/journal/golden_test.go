package journal_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/goldentest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

const dir = "testdata/v1"

var (
	at    = time.Date(2026, 3, 4, 5, 6, 7, 890123456, time.UTC)
	later = at.Add(90 * time.Minute)
	token = "q83vASNFZ4mrze8B"
	prev  = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
)

func ptr[T any](v T) *T { return &v }

// raw is JSON in its stored form, which writes <, > and & as escapes.
func raw(text string) json.RawMessage {
	stored, err := json.Marshal(json.RawMessage(text))
	if err != nil {
		panic(err)
	}
	return stored
}

// golden is every value that is stored, by the name of its file.
func golden() map[string]any {
	all := map[string]any{}
	for _, more := range []map[string]any{entries(), waits(), answers(), records()} {
		for name, value := range more {
			all[name] = value
		}
	}
	return all
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, value := range golden() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goldentest.JSON(t, filepath.Join(dir, name+".json"), value)
		})
	}
}

func TestGolden_every_file_has_its_case(t *testing.T) {
	t.Parallel()
	goldentest.Complete(t, dir, ".json", golden())
}

// Every word of the format is in some golden file, so that none can be renamed.
func TestGolden_holds_every_word(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	for _, value := range golden() {
		require.NoError(t, json.NewEncoder(&all).Encode(value))
	}
	has := func(field, word string) {
		t.Helper()
		require.Contains(t, all.String(), `"`+field+`":"`+word+`"`)
	}
	for _, kind := range session.Kinds() {
		has("kind", string(kind))
		require.Contains(t, golden(), "entry_"+string(kind))
	}
	for _, kind := range session.WaitKinds() {
		has("kind", string(kind))
		require.Contains(t, golden(), "wait_"+string(kind))
	}
	for _, kind := range session.AnswerKinds() {
		has("kind", string(kind))
	}
	for _, status := range session.Statuses() {
		has("status", string(status))
	}
	for _, o := range []session.DeadlineOutcome{session.ExpireDeny, session.ExpireDefault, session.ExpireFail, session.ExpireReask} {
		has("outcome", string(o))
	}
	for _, k := range []session.QuestionKind{session.QuestionText, session.QuestionChoice, session.QuestionMultiChoice} {
		has("kind", string(k))
	}
	for _, v := range []session.Verdict{session.VerdictHappened, session.VerdictNotHappened} {
		has("verdict", string(v))
	}
	for _, k := range []journal.SignalKind{journal.SignalInterrupt, journal.SignalCancel, journal.SignalAbort} {
		has("kind", string(k))
	}
	for _, tr := range []session.Trigger{
		session.TriggerStart, session.TriggerSubmit, session.TriggerResume, session.TriggerRetry, session.TriggerChild, session.TriggerExpiry, session.TriggerMessage,
	} {
		has("trigger", string(tr))
	}
	for _, s := range []session.WaitState{session.WaitOpen, session.WaitAnswered, session.WaitExpired, session.WaitTaken, session.WaitClosed} {
		has("state", string(s))
	}
	for _, s := range []journal.ToolState{journal.ToolStarted, journal.ToolFinished, journal.ToolAsking, journal.ToolClosed, journal.ToolMemo} {
		has("state", string(s))
	}
	for _, k := range []journal.WakeKind{journal.WakeStep, journal.WakeResume} {
		has("kind", string(k))
	}
	for _, o := range []session.StateOpKind{session.StateAppend, session.StateReplace} {
		has("op", string(o))
	}
	for _, p := range []session.ChangePolicy{session.ChangeGoOn, session.ChangeReask, session.ChangeFail} {
		has("onChange", string(p))
	}
}

// Every golden entry also goes through the codec.
func TestGolden_entries_go_through_the_codec(t *testing.T) {
	t.Parallel()
	for name, value := range entries() {
		e, ok := value.(journal.Entry)
		require.True(t, ok)
		stored, err := journal.Encode(&e)
		require.NoError(t, err, name)
		got, err := journal.Decode(stored)
		require.NoError(t, err, name)
		require.Equal(t, e, got, name)
	}
}

func call(id, name, arguments string) llm.Part {
	return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, ProviderID: "call_" + id, Name: name, Arguments: raw(arguments)}}
}

func result(id, name string, status llm.ResultStatus, output string) llm.Part {
	return llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{
		CallID: id, ProviderID: "call_" + id, Name: name, Status: status, Output: raw(output),
	}}
}
