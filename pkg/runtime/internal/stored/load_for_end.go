package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// LoadForEnd loads a session for an entry that only ends it: which calls are open and
// what was used, without what was said and without the custom state. It takes the
// memory of its largest entry, however long the journal is; of one that goes back to an
// earlier entry what its calls asked for is held too. The session is not for the cache.
func (st *Sessions) LoadForEnd(ctx context.Context, key session.Key) (*session.Session, error) {
	s, trimmed := &session.Session{Key: key}, 0
	for e, err := range st.cfg.Store.Entries(ctx, key, 0) {
		if err != nil {
			return nil, fmt.Errorf("load session %s: %w", key, err)
		}
		if dropContents(&e); e.Base != nil {
			trimmed = 0
		}
		err = engine.Apply(s, &e)
		if errors.Is(err, engine.ErrNeedsHistory) {
			return st.foldForEnd(ctx, key)
		}
		if err != nil {
			return nil, fmt.Errorf("load session %s: %w: %w", key, store.ErrCorrupt, err)
		}
		// The calls of the newest reply may be open: what they ask for is still needed.
		for newest := len(s.Messages) - 2; trimmed < newest; trimmed++ {
			s.Messages[trimmed] = withoutArguments(s.Messages[trimmed])
		}
	}
	if s.Version == 0 || s.Newest.Kind == session.KindDeleted {
		return nil, nil //nolint:nilnil // no such session, as loadAll says it
	}
	return s, nil
}

// foldForEnd is [Sessions.LoadForEnd] for a journal that goes back to an earlier entry.
func (st *Sessions) foldForEnd(ctx context.Context, key session.Key) (*session.Session, error) {
	var entries []journal.Entry
	for e, err := range st.cfg.Store.Entries(ctx, key, 0) {
		if err != nil {
			return nil, fmt.Errorf("load session %s: %w", key, err)
		}
		dropContents(&e)
		e.Events = nil
		entries = append(entries, e)
	}
	s, err := engine.Fold(key, entries)
	if err != nil {
		return nil, fmt.Errorf("load session %s: %w: %w", key, store.ErrCorrupt, err)
	}
	if s.Newest.Kind == session.KindDeleted {
		return nil, nil //nolint:nilnil // the store has still to remove it
	}
	return s, nil
}

// dropContents leaves out of an entry what ends no task: contents and the custom state.
func dropContents(e *journal.Entry) {
	e.Messages, e.StateOps = withoutContents(e.Messages), nil
	if e.Base != nil {
		base := *e.Base
		base.Messages, base.State = withoutContents(base.Messages), nil
		e.Base = &base
	}
}

// withoutContents returns messages with every part there and nothing in it that was
// said or that a tool returned.
func withoutContents(messages []llm.Message) []llm.Message {
	return eachPart(messages, func(p llm.Part) llm.Part {
		p.Text, p.Opaque, p.File = "", nil, nil
		if p.ToolResult != nil {
			result := *p.ToolResult
			result.Output = json.RawMessage(`""`)
			p.ToolResult = &result
		}
		return p
	})
}

func withoutArguments(m llm.Message) llm.Message {
	return eachPart([]llm.Message{m}, func(p llm.Part) llm.Part {
		if p.ToolCall != nil {
			call := *p.ToolCall
			call.Arguments = json.RawMessage(`{}`)
			p.ToolCall = &call
		}
		return p
	})[0]
}

// eachPart returns copies of messages with each part changed.
func eachPart(messages []llm.Message, change func(llm.Part) llm.Part) []llm.Message {
	changed := slices.Clone(messages)
	for i := range changed {
		parts := slices.Clone(changed[i].Parts)
		for j := range parts {
			parts[j] = change(parts[j])
		}
		changed[i].Parts = parts
	}
	return changed
}
