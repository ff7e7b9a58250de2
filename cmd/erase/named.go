package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// showNamed lists sessions of others in which the person's name stands.
func (e *eraser) showNamed(ctx context.Context, own []journal.Head) error {
	looked := 0
	err := e.each(ctx, "", func(found store.Found) error {
		if slices.ContainsFunc(own, func(h journal.Head) bool { return h.Key == found.Key }) {
			return nil
		}
		looked++
		place, err := e.names(ctx, found.Key)
		switch {
		case err != nil:
			e.say("  %s cannot be read, so nobody knows: %v", found.Key.ID, err)
		case place != "":
			e.say("  %s names %s: %s", found.Key.ID, e.person, place)
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.say("Looked at %d other sessions of the tenant, for %s as a whole value (who answered, began, may answer): not within texts.", looked, e.person)
	return nil
}

// names returns the first place of a session where the person's name is a value;
// empty when there is none.
func (e *eraser) names(ctx context.Context, key session.Key) (string, error) {
	for entry, err := range e.store.Entries(ctx, key, 0) {
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(entry)
		if err != nil {
			return "", err
		}
		if e.holds(raw) {
			return fmt.Sprintf("entry %d, %s", entry.Seq, entry.Kind), nil
		}
	}
	for _, kind := range []store.ItemKind{store.KindHead, store.KindWait, store.KindMail, store.KindAudit, store.KindNotice, store.KindTool, store.KindRun} {
		for item, err := range e.store.Items(ctx, key, kind, "") {
			if err != nil {
				return "", err
			}
			raw, err := item.Record()
			if err != nil {
				return "", err
			}
			if e.holds(raw) {
				return fmt.Sprintf("%s %s", kind, item.ID), nil
			}
		}
	}
	return "", nil
}

// holds reports whether a text of a JSON value is the person's name.
func (e *eraser) holds(raw []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := decoder.Token()
		if err != nil {
			return false // its end
		}
		if token == json.Token(e.person) {
			return true
		}
	}
}
