package wire_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fill sets every field to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at.Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"n":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), element)
	case reflect.String:
		v.SetString("text" + string(rune('a'+*n%26)))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	default:
		panic(v.Kind())
	}
}

var camelCase = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)

// fields walks through the JSON names of a type of ours.
func fields(t *testing.T, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
		return
	}
	for i := range typ.NumField() {
		if !typ.Field(i).IsExported() {
			continue
		}
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		require.Regexp(t, camelCase, name, "%s.%s", typ, typ.Field(i).Name)
		fields(t, typ.Field(i).Type)
	}
}

// TestRound: everything the API says is read back as it was, and its names are camelCase.
func TestRound(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		&wire.StartRequest{}, &wire.Started{}, &wire.SubmitRequest{}, &wire.Submitted{}, &wire.ResumeRequest{}, &wire.Resumed{},
		&wire.Session{}, &wire.Wait{}, &wire.Sessions{}, &wire.Runs{}, &wire.Checkpoints{}, &wire.Waits{}, &wire.Messages{}, &wire.Problem{},
	} {
		t.Run(reflect.TypeOf(v).Elem().Name(), func(t *testing.T) {
			t.Parallel()
			n := 0
			fill(reflect.ValueOf(v).Elem(), &n)
			raw, err := json.Marshal(v)
			require.NoError(t, err)
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			require.NoError(t, json.Unmarshal(raw, again))
			require.Equal(t, v, again)
			fields(t, reflect.TypeOf(v))
		})
	}
}

// TestWait: a wait loses nothing on its way through the API that an answer or a
// manifest needs.
func TestWait(t *testing.T) {
	t.Parallel()
	var record journal.WaitRecord
	n := 0
	fill(reflect.ValueOf(&record).Elem(), &n)
	// These are the sweep's, the journal's and the server's own.
	record.TakenBy, record.Due, record.Audit, record.Wait.Needs, record.HeldLast, record.Root = 0, nil, journal.AuditTip{}, nil, false, ""
	w := wire.NewWait("s", record)
	require.Equal(t, "s", w.SessionID)
	require.Equal(t, record, w.Record())
	require.Equal(t, record.Wait, w.Wait())
}

// TestManifest: a session holds all that a manifest says.
func TestManifest(t *testing.T) {
	t.Parallel()
	approval := journal.WaitRecord{State: session.WaitOpen, Wait: session.Wait{ID: "w2-1", Kind: session.WaitApproval, Nonce: "n", Call: "c2-1", Tool: "deploy", Arguments: json.RawMessage(`{}`), Digest: "d"}}
	question := journal.WaitRecord{State: session.WaitOpen, Wait: session.Wait{ID: "w2-2", Kind: session.WaitQuestion, Call: "c2-2", Question: &session.Question{ID: "q", Text: "Which?"}, Deadline: &session.Deadline{At: at, Outcome: session.ExpireDeny}}}
	usage := llm.Usage{Input: 10, CacheRead: 4, CacheWrite: 2, Output: 5, Reasoning: 1}
	s := wire.Session{
		ID: "s", Agent: "a", Status: session.StatusSuspended, Outcome: session.OutcomePaused, CheckpointID: "cp", Step: 3, Text: "hm", Output: json.RawMessage(`1`),
		Usage: wire.NewUsage(usage), Pause: &wire.Pause{Type: session.PauseMixed, Pending: []wire.Wait{wire.NewWait("s", approval), wire.NewWait("s", question)}},
	}
	want := session.Manifest{
		Outcome: session.OutcomePaused, SessionID: "s", Agent: "a", CheckpointID: "cp", AgentMessage: "hm", Output: json.RawMessage(`1`), StepsTaken: 3,
		Usage: session.NewManifestUsage(usage),
		PauseReason: &session.PauseReason{
			Type: session.PauseMixed, PendingToolCalls: []session.PendingItem{session.NewPendingItem(approval.Wait)}, Pending: []session.PendingItem{session.NewPendingItem(question.Wait)},
		},
	}
	require.Equal(t, want, s.Manifest())

	s.Pause, want.PauseReason = nil, nil
	for _, status := range session.Statuses() {
		s.Status, want.AgentMessage, want.FinalMessage = status, "", ""
		switch status {
		case session.StatusRunning:
		case session.StatusCompleted, session.StatusCancelled:
			want.FinalMessage = "hm"
		case session.StatusSuspended, session.StatusInterrupted, session.StatusFailed:
			want.AgentMessage = "hm"
		}
		require.Equal(t, want, s.Manifest(), status)
	}
	s.Failure = &wire.Failure{Code: "planner_failed", Message: "no plan", Retryable: true, Data: json.RawMessage(`{}`)}
	require.Equal(t, &session.ManifestError{Code: "planner_failed", Message: "no plan", Data: json.RawMessage(`{}`)}, s.Manifest().Error)
}
