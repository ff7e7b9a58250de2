package journal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// sprinkle adds a field that only a later program knows to every object, but those
// where anything may stand.
func sprinkle(v any, at string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			switch name {
			case "arguments", "output", "memo", "data", "value", "answer_", "editedInput", "result_":
			default:
				v[name] = sprinkle(value, at+"/"+name)
			}
		}
		v["zzNew"] = map[string]any{"at": at, "list": []any{1.5, nil, "<b>"}}
	case []any:
		for i := range v {
			v[i] = sprinkle(v[i], fmt.Sprintf("%s/%d", at, i))
		}
	}
	return v
}

func withUnknown(t *testing.T, record any) []byte {
	t.Helper()
	text, err := json.Marshal(record)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	text, err = json.Marshal(sprinkle(v, ""))
	require.NoError(t, err)
	return text
}

func approvalRecord() journal.WaitRecord {
	w, _ := waits()["wait_question"].(session.Wait)
	w.Origin = &session.Origin{Session: "s2", Wait: "w2-1"}
	return journal.WaitRecord{Wait: w, State: session.WaitOpen, Agent: "support", Due: new(later), Audit: journal.AuditTip{Count: 1, Hash: prev}}
}

// A record of a newer program is written again with all that was in it, in every
// object, whatever this program changes.
func TestUnknownFields_are_kept(t *testing.T) {
	t.Parallel()
	wait := approvalRecord()
	for name, record := range map[string]any{
		"head": &journal.Head{
			Key: session.Key{Tenant: "default", ID: "s1"}, Status: session.StatusRunning, Agent: "a", Task: 1, StatusSeq: 2, Due: new(later),
			Parent: &session.Parent{Session: "s0", Root: "s0"}, Signal: signal(journal.SignalCancel), CreatedAt: at, UpdatedAt: at,
		},
		"wait":        &wait,
		"run":         &session.Run{ID: 1, Task: 1, Trigger: session.TriggerStart, Status: session.StatusRunning, StartedAt: at, FirstEntry: 1},
		"tool":        &journal.ToolRecord{Call: "c2-1", State: journal.ToolMemo, At: at, Memo: map[string]json.RawMessage{"k": raw(`{"a":1}`)}},
		"mail":        &journal.Mail{ID: "m1", Who: "ana", At: at, From: "cli"},
		"audit":       &journal.Audit{ID: "1", Wait: "w2-1", N: 1, Kind: journal.AuditRefused, Who: "ana", At: at, From: "cli", Data: raw(`{"a":1}`)},
		"idempotency": &journal.Idempotency{Key: "k", Digest: "d", Session: "s1", Seq: 1, Answer: raw(`{"a":1}`), ExpiresAt: at},
		"tenant":      &journal.TenantRecord{Name: "n", Value: raw(`{"a":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := withUnknown(t, record)
			require.Contains(t, string(stored), "zzNew")
			require.NoError(t, journal.UnmarshalRecord(stored, record))
			again, err := journal.MarshalRecord(record)
			require.NoError(t, err)
			require.JSONEq(t, string(stored), string(again))
		})
	}
}

func TestUnknownFields_of_what_was_changed(t *testing.T) {
	t.Parallel()
	original := approvalRecord()
	stored := withUnknown(t, &original)
	var record journal.WaitRecord
	require.NoError(t, journal.UnmarshalRecord(stored, &record))
	require.Equal(t, original.Wait, record.Wait)

	changed := record // a copy, as whoever changes a record makes one
	answer := session.Answer{Wait: "w4-3", Kind: session.AnswerReply, Selected: []string{"r"}, Who: "ana", When: at, From: "cli"}
	changed.State, changed.Answer, changed.Due = session.WaitAnswered, &answer, nil
	written, err := journal.MarshalRecord(&changed)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(written, &fields))
	require.Contains(t, fields, "zzNew")
	require.Equal(t, "answered", fields["state"])
	require.NotContains(t, fields, "due")
	require.NotContains(t, fields["answer"], "zzNew")
	wait, _ := fields["wait"].(map[string]any)
	require.Contains(t, wait, "zzNew", "of the wait in it")
	require.Contains(t, wait["deadline"], "zzNew", "of the deadline in that")
	question, _ := wait["question"].(map[string]any)
	choices, _ := question["choices"].([]any)
	require.Contains(t, choices[1], "zzNew", "of an item of a list")

	var again journal.WaitRecord
	require.NoError(t, journal.UnmarshalRecord(written, &again))
	third, err := journal.MarshalRecord(&again)
	require.NoError(t, err)
	require.JSONEq(t, string(written), string(third))
}

// What was replaced does not get the fields of what stood there before.
func TestUnknownFields_of_what_was_replaced(t *testing.T) {
	t.Parallel()
	head := journal.Head{Key: session.Key{Tenant: "default", ID: "s1"}, Agent: "a", Signal: signal(journal.SignalInterrupt), CreatedAt: at, UpdatedAt: at}
	require.NoError(t, journal.UnmarshalRecord(withUnknown(t, &head), &head))
	stronger := *signal(journal.SignalAbort)
	stronger.ID = "sig-2"
	for name, s := range map[string]*journal.Signal{"replaced": &stronger, "cleared": nil} {
		changed := head
		changed.Signal = s
		written, err := journal.MarshalRecord(&changed)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(written, &fields))
		require.Contains(t, fields, "zzNew", name)
		if s == nil {
			require.NotContains(t, fields, "signal")
			continue
		}
		require.Equal(t, "abort", fields["signal"].(map[string]any)["kind"])
		require.NotContains(t, fields["signal"], "zzNew", name)
	}
}

func TestUnmarshalRecord_refuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{`, `{"state":"open"} {}`, `{"state":"open"}x`, `{"state":1}`, `{"zz":1,"state":1}`, `[]`, `{"zz":1}]`} {
		var record journal.WaitRecord
		require.Error(t, journal.UnmarshalRecord([]byte(text), &record), text)
	}
	var record journal.WaitRecord
	require.NoError(t, journal.UnmarshalRecord([]byte(" {\"state\":\"open\"}\n"), &record))
	require.Equal(t, session.WaitOpen, record.State)
}

// What was read before, and whatever was wrong with it, changes nothing of what is
// read next, also by many at once.
func TestUnmarshalRecord_one_after_the_other(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	texts := map[string]session.WaitState{ // empty: refused
		`{"state":"open"}`: "open", ` {"state":"taken"} `: "taken", `{"state":"closed","zz":1}`: "closed", `{"state":"` + long + `"}`: session.WaitState(long),
		`{"state":1}`: "", `{"state":"open"`: "", `{"state":"open"}{"state":"taken"}`: "", `{"state":"open"}]`: "", ``: "", ` `: "", `7`: "", `{"state":"\ud83d`: "",
	}
	for before := range texts {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for text, want := range texts {
				var ignored, record journal.WaitRecord
				_ = journal.UnmarshalRecord([]byte(before), &ignored)
				err := journal.UnmarshalRecord([]byte(text), &record)
				require.Equal(t, want == "", err != nil, "%.40q after %.40q: %v", text, before, err)
				if err == nil {
					require.Equal(t, want, record.State)
				}
			}
		})
	}
}

// Whatever is stored, reading and writing it twice is the same, and nothing panics.
func FuzzRecord(f *testing.F) {
	record := approvalRecord()
	text, err := json.Marshal(&record)
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"wait":{"zz":[1],"question":{"choices":[{"zz":1}]}},"answer":{"selected":null,"zz":{}},"Due":"x","held":false}`))
	f.Add([]byte(`{"wait":null,"audit":{"count":0,"zz":1},"zz":{"zz":[{}]}}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		var first, second journal.WaitRecord
		if journal.UnmarshalRecord(stored, &first) != nil {
			return
		}
		written, err := journal.MarshalRecord(&first)
		require.NoError(t, err)
		require.NoError(t, journal.UnmarshalRecord(written, &second))
		again, err := journal.MarshalRecord(&second)
		require.NoError(t, err)
		require.JSONEq(t, string(written), string(again))
	})
}

// What it costs to look for fields that are not known, beside a decoder that does not.
func BenchmarkRecord(b *testing.B) {
	record := approvalRecord()
	head := journal.Head{Key: session.Key{Tenant: "default", ID: "s1"}, Status: session.StatusRunning, Agent: "a", Task: 1, StatusSeq: 2, Due: new(later), CreatedAt: at, UpdatedAt: at}
	for name, value := range map[string]any{"wait": &record, "head": &head} {
		stored, err := journal.MarshalRecord(value)
		require.NoError(b, err)
		into := func() any {
			if name == "wait" {
				return new(journal.WaitRecord)
			}
			return new(journal.Head)
		}
		b.Run(name+"/plain", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := json.Unmarshal(stored, into()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/kept", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := journal.UnmarshalRecord(stored, into()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
