// Package eventbridge puts notices onto an event bus of AWS.
package eventbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/adjourn/adjourn/internal/awscall"
	"github.com/adjourn/adjourn/internal/notice"
)

// Source is that of the events: their field source.
const Source = "adjourn"

const (
	// answerTime bounds a request, and maxAnswer what is read of its answer.
	answerTime = 10 * time.Second
	maxAnswer  = 64 << 10
)

// Config says which bus. All fields are required.
type Config struct {
	// AWS has the region, the credentials and, for an emulator, the endpoint.
	AWS aws.Config
	// Bus is the name or the ARN of the bus.
	Bus string
	Now func() time.Time
}

// Channel puts events onto a bus.
type Channel struct {
	bus  string
	call awscall.Caller
}

var _ notice.Channel = (*Channel)(nil)

// New returns the channel. It asks nothing of anybody.
func New(cfg Config) *Channel {
	return &Channel{bus: cfg.Bus, call: awscall.Caller{Config: cfg.AWS, Client: &http.Client{Timeout: answerTime}, Now: cfg.Now, Most: maxAnswer}}
}

// Name returns the name of the channel.
func (c *Channel) Name() string { return notice.EventBridge }

// detail is what an event holds: the data of the notice, and the id by which who has seen it knows it.
type detail struct {
	ID string `json:"id"`
	notice.Data
}

// entry is one event of PutEvents.
type entry struct {
	Time         int64  `json:"Time"`
	Source       string `json:"Source"`
	DetailType   string `json:"DetailType"`
	Detail       string `json:"Detail"`
	EventBusName string `json:"EventBusName"`
}

// Send puts one event. Its detail-type is the type of the notice.
func (c *Channel) Send(ctx context.Context, m notice.Message) (json.RawMessage, error) {
	payload, err := m.Payload(ctx, notice.Shows{})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(detail{ID: m.ID, Data: payload.Data})
	if err != nil {
		return nil, err
	}
	in := struct {
		Entries []entry `json:"Entries"`
	}{[]entry{{Time: payload.Timestamp.Unix(), Source: Source, DetailType: string(payload.Type), Detail: string(raw), EventBusName: c.bus}}}
	var out struct {
		FailedEntryCount int
		Entries          []struct {
			EventID      string `json:"EventId"`
			ErrorCode    string
			ErrorMessage string
		}
	}
	if err := c.call.JSON(ctx, "events", "AWSEvents.PutEvents", "1.1", in, &out); err != nil {
		return nil, err
	}
	if len(out.Entries) != 1 || out.FailedEntryCount != 0 || out.Entries[0].ErrorCode != "" {
		why := "it took no event"
		if len(out.Entries) == 1 {
			why = out.Entries[0].ErrorCode + ": " + out.Entries[0].ErrorMessage
		}
		return nil, fmt.Errorf("bus %s: %s", c.bus, why)
	}
	return nil, nil
}
