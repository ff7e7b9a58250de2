package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
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

// event of EventBridge, as its target gets it.
type event struct {
	Version    string         `json:"version"`
	ID         string         `json:"id"`
	DetailType string         `json:"detail-type"`
	Source     string         `json:"source"`
	Account    string         `json:"account"`
	Time       time.Time      `json:"time"`
	Region     string         `json:"region"`
	Resources  []string       `json:"resources"`
	Detail     map[string]any `json:"detail"`
}

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
	payload, err := s.payload()
	if err != nil {
		return err
	}
	var first, again startedEvent
	if err := s.below.invoke(ctx, "Event", payload, &first); err != nil {
		return err
	}
	if len(first.Sessions) != 1 || first.Sessions[0].Replayed {
		return fmt.Errorf("a new event started %d sessions", len(first.Sessions))
	}
	id := first.Sessions[0].SessionID
	if err := s.below.invoke(ctx, "Event", payload, &again); err != nil {
		return err
	}
	if len(again.Sessions) != 1 || again.Sessions[0].SessionID != id || !again.Sessions[0].Replayed {
		return fmt.Errorf("the same event again did not lead to session %s: %+v", id, again.Sessions)
	}
	s.say("   it started %s; the same event again started nothing", id)
	ended, err := s.rested(ctx, id, session.OutcomeCompleted)
	if err != nil {
		return fmt.Errorf("%w (events start sessions of tenant %s: is the token of another?)", err, s.below.parameters["EventTenant"])
	}
	s.say("   completed: %s", ended.Text)
	if !strings.Contains(","+s.below.parameters["EventSources"]+",", ","+source+",") {
		s.say("   (with %s among EventSources, EventBridge would bring one too)", source)
		return nil
	}
	return s.bridge(ctx)
}

// payload is an event as the stack takes it: of EventBridge where there is a
// template for it, else one that says itself what to start.
func (s *story) payload() ([]byte, error) {
	id := rand.Text()
	script := fmt.Sprintf("[{say: hello from event %s}]", id)
	if s.below.parameters["EventTemplate"] == "" {
		return json.Marshal(map[string]string{"agent": "lab", "input": script, "idempotencyKey": id})
	}
	return json.Marshal(event{
		Version: "0", ID: id, DetailType: "smoke", Source: source, Account: "000000000000", Time: s.now().UTC(),
		Region: s.below.cfg.Region, Resources: []string{}, Detail: map[string]any{"script": script},
	})
}

// bridge sends an event to the bus and finds the session that its rule led to.
func (s *story) bridge(ctx context.Context) error {
	nonce := rand.Text()
	err := s.below.putEvent(ctx, source, map[string]any{"script": fmt.Sprintf("[{say: hello from the bus %s}]", nonce)})
	if err != nil {
		return err
	}
	for range 60 {
		for found, err := range s.caller.AllSessions(ctx, client.SessionsParams{Page: client.Page{Limit: 20}}) {
			if err != nil {
				return err
			}
			if !strings.Contains(found.Title, nonce) {
				continue
			}
			ended, err := s.rested(ctx, found.ID, session.OutcomeCompleted)
			if err != nil {
				return err
			}
			s.say("   EventBridge brought another and its rule started %s, completed: %s", ended.ID, ended.Text)
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return errors.New("an event was put onto the bus, and no session came of it within a minute")
}
