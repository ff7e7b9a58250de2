package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// source is where the story's events come from; a stack whose EventSources has it
// starts sessions of them.
const source = "adjourn.smoke"

// startedEvent is what the event function answers to an event.
type startedEvent struct {
	Sessions []struct {
		SessionID string `json:"sessionId"`
		Replayed  bool   `json:"replayed"`
	} `json:"sessions"`
}

func (s *story) event(ctx context.Context) error {
	if s.below == nil {
		s.say("   (with -stack and AWS credentials an event would start one)")
		return nil
	}
	// Of EventBridge where there is a template for it, else one that says itself what to start.
	id := rand.Text()
	script := fmt.Sprintf("[{say: hello from event %s}]", id)
	event := map[string]any{"agent": "lab", "input": script, "idempotencyKey": id}
	if s.below.parameters["EventTemplate"] != "" {
		event = map[string]any{
			"version": "0", "id": id, "detail-type": "smoke", "source": source, "account": "000000000000", "time": s.now().UTC(),
			"region": s.below.Config.Region, "resources": []string{}, "detail": map[string]string{"script": script},
		}
	}
	var first, again startedEvent
	if err := errors.Join(s.below.invoke(ctx, "Event", event, &first), s.below.invoke(ctx, "Event", event, &again)); err != nil {
		return err
	}
	if len(first.Sessions) != 1 || first.Sessions[0].Replayed {
		return fmt.Errorf("a new event started %d sessions", len(first.Sessions))
	}
	id = first.Sessions[0].SessionID
	if len(again.Sessions) != 1 || again.Sessions[0].SessionID != id || !again.Sessions[0].Replayed {
		return fmt.Errorf("the same event again did not lead to session %s: %+v", id, again.Sessions)
	}
	s.say("   it started %s; the same event again started nothing", id)
	if _, err := s.rested(ctx, id, session.OutcomeCompleted); err != nil {
		return fmt.Errorf("%w (events start sessions of tenant %s: is the token of another?)", err, s.below.parameters["EventTenant"])
	}
	if !strings.Contains(","+s.below.parameters["EventSources"]+",", ","+source+",") {
		s.say("   (with %s among EventSources, EventBridge would bring one too)", source)
		return nil
	}
	return s.bridge(ctx)
}

// bridge sends an event to the bus and finds the session that its rule led to.
func (s *story) bridge(ctx context.Context) error {
	nonce := rand.Text()
	if err := s.below.putEvent(ctx, source, map[string]any{"script": fmt.Sprintf("[{say: hello from the bus %s}]", nonce)}); err != nil {
		return err
	}
	for range 60 {
		for found, err := range s.caller.AllSessions(ctx, client.SessionsParams{Page: client.Page{Limit: 20}}) {
			if err != nil {
				return err
			}
			if strings.Contains(found.Title, nonce) {
				s.say("   EventBridge brought another and its rule started %s", found.ID)
				_, err := s.rested(ctx, found.ID, session.OutcomeCompleted)
				return err
			}
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return errors.New("an event was put onto the bus, and no session came of it within a minute")
}
