package control

import (
	"context"
	"reflect"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Looked is a session as it was at a checkpoint.
type Looked struct {
	Entry journal.Entry
	At    *session.Session
	// Effects done after the checkpoint, as going back to it lists them.
	Effects session.EffectsDone
	// Compared with an earlier checkpoint, if one was asked for.
	Compared *Compared
}

// Compared is what a checkpoint has that another one has not.
type Compared struct {
	Checkpoint string
	// Common is how many messages at the beginning are the same in both.
	Common int
	// Removed are the messages of the other checkpoint behind those, Added those of this one.
	Removed, Added []llm.Message
	// State are the changes that make the other one's state this one's (RFC 6902).
	State []session.StateChange
}

// Look reads a session as it was at a checkpoint, compared with another one unless that is empty.
func (c *Control) Look(ctx context.Context, key session.Key, checkpoint, with string) (Looked, error) {
	if _, err := c.cfg.Sessions.ExistingHead(ctx, key); err != nil {
		return Looked{}, err
	}
	was, err := c.past(ctx, key, func(_ *session.Session, entries []journal.Entry) (int64, error) {
		return find(key, entries, checkpoint)
	})
	if err != nil {
		return Looked{}, err
	}
	ledgers, err := c.ledgers(ctx, key)
	if err != nil {
		return Looked{}, err
	}
	if _, err := c.leftBehind(ctx, key, &was); err != nil {
		return Looked{}, err
	}
	out := Looked{Entry: was.entries[was.to.Version-1], At: was.to}
	if out.Effects, err = c.effects(was, ledgers); err != nil || with == "" {
		return out, err
	}
	seq, err := find(key, was.entries, with)
	if err != nil {
		return Looked{}, err
	}
	other, err := fold(key, was.entries[:seq])
	if err != nil {
		return Looked{}, err
	}
	common := sameBeginning(other.Messages, was.to.Messages)
	out.Compared = &Compared{
		Checkpoint: with, Common: common, Removed: other.Messages[common:], Added: was.to.Messages[common:], State: other.State.Diff(&was.to.State),
	}
	return out, nil
}

// sameBeginning counts the messages with which both conversations begin.
func sameBeginning(a, b []llm.Message) (n int) {
	for n < min(len(a), len(b)) && reflect.DeepEqual(a[n], b[n]) {
		n++
	}
	return n
}
