package stored

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// journalStore is a store of one session that has nothing but its entries.
type journalStore struct {
	store.Store
	entries [][]byte
}

func (j *journalStore) Entries(context.Context, session.Key, int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for _, stored := range j.entries {
			if e, err := journal.Decode(stored); !yield(e, err) {
				return
			}
		}
	}
}

// loadBoth returns the session of a journal, whole and bare.
func loadBoth(t *testing.T, entries [][]byte) (whole, bare *session.Session) {
	t.Helper()
	st := New(Config{Store: &journalStore{entries: entries}})
	key := session.Key{Tenant: session.DefaultTenant, ID: "s1"}
	whole, err := st.loadAll(t.Context(), key)
	require.NoError(t, err)
	bare, err = st.LoadForEnd(t.Context(), key)
	require.NoError(t, err)
	return whole, bare
}

// Wherever a journal stands, the entry that ends its task is the same whether the
// session was loaded whole or bare: of no call, answer, number or run less is said.
func TestLoadForEnd_ends_a_task_like_the_whole(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../internal/engine/testdata/v1/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		entries := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		for n := range entries {
			whole, bare := loadBoth(t, entries[:n+1])
			if bytes.Contains(entries[n], []byte(`"kind":"deleted"`)) {
				require.Nil(t, bare, "it is there for nobody")
				continue
			}
			require.Equal(t, whole.Calls, bare.Calls, "%s, entry %d", file, n+1)
			require.Len(t, bare.Messages, len(whole.Messages))
			if whole.Status != session.StatusRunning {
				continue
			}
			out := engine.StepOutcome{Failure: &session.Failure{Type: "step_died"}}
			stamp := engine.Stamp{Now: whole.Newest.At.Add(time.Second), By: "step", Token: "t"}
			ended := engine.Close(bare, out, stamp)
			require.Equal(t, engine.Close(whole, out, stamp), ended, "%s, entry %d", file, n+1)
			require.NoError(t, engine.Apply(bare, &ended.Entry))
			require.NoError(t, engine.Apply(whole, &ended.Entry))
		}
	}
}

// What a bare session holds does not grow with what was said, asked for, returned,
// attached or put into the custom state, also where its history was shortened.
func TestLoadForEnd_holds_no_contents(t *testing.T) {
	t.Parallel()
	const steps, size = 60, 10_000
	large := strings.Repeat("x", size)
	value := json.RawMessage(`"` + large + `"`)
	var entries [][]byte
	s := &session.Session{Key: session.Key{Tenant: session.DefaultTenant, ID: "s1"}}
	stamp := func() engine.Stamp {
		return engine.Stamp{Now: time.Unix(int64(s.Next()), 0), By: "step", Token: fmt.Sprint("t", s.Next())}
	}
	write := func(e journal.Entry) {
		stored, err := journal.Encode(&e)
		require.NoError(t, err)
		decoded, err := journal.Decode(stored)
		require.NoError(t, err)
		require.NoError(t, engine.Apply(s, &decoded))
		entries = append(entries, stored)
	}
	asked := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
		{Kind: llm.PartText, Text: large}, {Kind: llm.PartFile, File: &llm.FileRef{MediaType: "image/png", Data: []byte(large)}},
	}}
	state := []session.StateOp{{Op: session.StateAppend, Key: "notes", Value: value}}
	step := func() {
		id := fmt.Sprintf("c%d-1", s.Next())
		write(engine.Close(s, engine.StepOutcome{
			Mail: []string{fmt.Sprint("m", s.Next())}, MailMessages: []llm.Message{asked}, StateOps: state,
			Reply: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
				{Kind: llm.PartReasoning, Text: large, Provider: "test", Opaque: []byte(large)},
				{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, Name: "echo", Arguments: value}},
			}},
			Results: []llm.ToolResult{{CallID: id, Name: "echo", Status: llm.ResultSuccess, Output: value}},
		}, stamp()).Entry)
	}
	write(engine.Start(s, session.Rules{Agent: "a"}, asked, stamp()).Entry)
	for range steps {
		step()
	}
	shortened := engine.Close(s, engine.StepOutcome{}, stamp()).Entry
	shortened.Base = &journal.Base{Seq: s.Version, Messages: []llm.Message{asked, asked}, State: s.State.Snapshot()}
	held := func(s *session.Session) int {
		messages, err := json.Marshal(s.Messages)
		require.NoError(t, err)
		return len(messages) + s.State.Size()
	}
	check := func() {
		whole, bare := loadBoth(t, entries)
		require.Greater(t, held(whole), steps*size)
		require.Less(t, held(bare), steps*600+2*size)
	}
	check()
	write(shortened)
	check()
	for range steps {
		step()
	}
	check()

	back := engine.Close(s, engine.StepOutcome{}, stamp()).Entry
	back.Kind, back.Task, back.Run, back.Trigger, back.Used = session.KindRestored, s.Task+1, s.Run+1, session.TriggerRetry, journal.Used{}
	back.Base = &journal.Base{Seq: s.Version} // the one before the newest by then
	stopped := engine.Stopped(s, journal.Signal{ID: "i", Task: s.Task, Kind: journal.SignalInterrupt}, engine.StepOutcome{}, stamp()).Entry
	write(stopped)
	back.Seq, back.Prev, back.Token = s.Next(), s.Newest.Hash, "back"
	stored, err := journal.Encode(&back)
	require.NoError(t, err)
	entries = append(entries, stored)
	whole, bare := loadBoth(t, entries)
	require.Greater(t, held(whole), steps*size)
	require.Less(t, held(bare), steps*(600+size)+10*size, "only what was asked for")
}
