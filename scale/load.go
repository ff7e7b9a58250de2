package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"time"
)

// A session as the page assumes it.
const (
	stepsEach = 20
	waitsEach = 2
	stepTakes = 8 * time.Second
	peak      = 3    // the busiest hour against the mean
	share     = 0.5  // of all sessions that one tenant has
	looks     = 3    // pages of an inbox that are read for each answer
	pageOf    = 20   // waits on such a page
	logBytes  = 1200 // of one invocation
	coldReads = 6    // units for the journal of a session this process has not seen
	keptDays  = 30
)

//go:embed moves.json
var moved embed.FS

// move is what one kind of move costs: make bench-aws prints it, and a test of
// pkg/store/dynamostore holds moves.json to what it counts.
type move struct {
	Name        string  `json:"move"`
	Requests    float64 `json:"requests"`
	Writes      float64 `json:"writes"`
	IndexWrites float64 `json:"indexWrites"`
	Reads       float64 `json:"reads"`
	Bytes       float64 `json:"bytes"`
	Sends       float64 `json:"sends"`
}

// dollars is what DynamoDB and SQS take for it.
func (m move) dollars() float64 {
	return (m.Writes+m.IndexWrites)*perWrite + m.Reads*perRead + m.Sends*perMessage
}

// made is how often a session makes each move; those reckoned with have plain steps only.
var made = map[string]float64{
	"start": 1, "ReadOnly step": stepsEach - waitsEach - 1, "suspend": waitsEach, "answer": waitsEach, "resume": waitsEach, "finish": 1,
}

// need is what one session needs of each part.
type need struct {
	move        // the sum of its moves, with what long steps and cold processes add
	invocations float64
	seconds     float64 // of the step function
	apiCalls    float64
	indexReads  float64 // of Reads, those of an index
}

func readMoves() (moves []move, err error) {
	raw, err := moved.ReadFile("moves.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &moves); err != nil {
		return nil, fmt.Errorf("moves.json: %w", err)
	}
	return moves, nil
}

// needs adds up what a session needs.
func needs(moves []move) need {
	var n need
	for _, m := range moves {
		times := made[m.Name]
		n.Requests += times * m.Requests
		n.Writes += times * m.Writes
		n.IndexWrites += times * m.IndexWrites
		n.Reads += times * m.Reads
		n.Bytes += times * m.Bytes
		n.Sends += times * m.Sends
	}
	n.invocations = stepsEach + waitsEach
	n.seconds = stepsEach * stepTakes.Seconds()
	// A step of some seconds looks for signals and renews its lease; where many
	// processes share the work, hardly one has seen the session before.
	looksEach := n.seconds / watchEvery.Seconds()
	renews := n.seconds / renewEvery.Seconds()
	pages := float64(waitsEach * looks)
	n.Requests += looksEach + pages*(listShards+1)
	n.Reads += looksEach + n.invocations*coldReads + pages*(listShards/2+pageOf)
	n.indexReads = pages * listShards / 2
	n.Writes += renews
	n.apiCalls = 1 + waitsEach + pages
	return n
}

// perSecond is how often something happens at the peak that happens so often for each
// of a day's sessions.
func perSecond(sessions, each float64) float64 { return sessions * each * peak / (24 * 60 * 60) }
