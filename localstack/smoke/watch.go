package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

const (
	// patience is how long a request waits for a session that works.
	patience = 15 * time.Second
	// quiet and still are those of a story: a step of it takes a moment, and the
	// first one a cold start.
	quiet = 20 * time.Second
	still = time.Minute
)

// rested waits until a session rests, and wants it to have ended up so. One whose
// journal does not grow all the while is given up: where the chain is off it would
// be watched for ever.
func (s *story) rested(ctx context.Context, id string, want session.Outcome) (client.Session, error) {
	var version int64
	since, told := s.now(), false // when the journal was first seen to be so long
	for {
		now, err := s.caller.Session(ctx, id, min(patience, s.next(since)))
		switch {
		case err != nil || now.Outcome == want:
			return now, err
		case now.Outcome != session.OutcomeRunning:
			return now, fmt.Errorf("session %s is %s, not %s (%+v)", id, now.Outcome, want, now.Failure)
		case now.Version != version:
			version, since, told = now.Version, s.now(), false
		}
		switch stood := s.now().Sub(since); {
		case stood >= s.still:
			return now, fmt.Errorf("session %s is still at entry %d, and nothing was written to it for %s: %s", id, version, s.still, s.stands())
		case stood >= s.quiet && !told:
			told = true
			s.say("   %s: no step has run for %s: %s", id, s.quiet, s.stands())
		}
		if err := sleep(ctx, min(200*time.Millisecond, s.quiet)); err != nil {
			return now, fmt.Errorf("session %s is still at entry %d: %w", id, now.Version, err)
		}
	}
}

// next is how long it is until something has to be said of a session that stands
// still since then; a request asks for whole seconds.
func (s *story) next(since time.Time) time.Duration {
	until := s.still
	stood := s.now().Sub(since)
	if stood < s.quiet {
		until = s.quiet
	}
	return max((until - stood).Truncate(time.Second), 0)
}

// stands says why sessions may stand still, as far as it can be seen from here.
func (s *story) stands() string {
	if s.below != nil && s.below.parameters["Chain"] == "off" {
		return "the stack was deployed with Chain=off, so the chain is off. Deploy it with Chain=on"
	}
	return "is the chain off (Chain=off, or its event source mapping is disabled)? Are all MaxConcurrency steps taken? Does the step function fail at its start? Its log and the alarms say more"
}

// nothingRuns watches a paused session for a while. The sweep alone may run, once a minute.
func (s *story) nothingRuns(ctx context.Context, paused client.Session) error {
	before, err := s.ran(ctx)
	if err != nil {
		return err
	}
	s.say("   watching it for %s …", s.rest)
	if err := sleep(ctx, s.rest); err != nil {
		return err
	}
	switch after, err := s.ran(ctx); {
	case err != nil:
		return err
	case !slices.Equal(before, after):
		return fmt.Errorf("while session %s rested, functions were invoked: %v of %v before, %v after", paused.ID, before, asked, after)
	case s.below != nil:
		s.say("   meanwhile no function ran (but the sweep, once a minute), and the queue is empty")
	}
	now, err := s.caller.Session(ctx, paused.ID, 0)
	if err == nil && now.Version != paused.Version {
		err = fmt.Errorf("while it rested, session %s went from entry %d to %d", paused.ID, paused.Version, now.Version)
	}
	return err
}

// asked are the functions that run because somebody asked for it: all but the sweep.
var asked = functions[:len(functions)-1]

// ran counts how often they ran, once the queue is empty, where it may look beneath the API.
func (s *story) ran(ctx context.Context) ([]int, error) {
	if s.below == nil {
		return nil, nil
	}
	if err := s.below.emptyQueue(ctx); err != nil {
		return nil, err
	}
	return s.below.settled(ctx, asked...)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
