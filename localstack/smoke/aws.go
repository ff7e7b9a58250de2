package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/adjourn/adjourn/internal/awscall"
)

// beneath is what lies under the API of a stack: its functions, queue and bus.
type beneath struct {
	awscall.Caller
	stack string
	// outputs and parameters of the stack.
	outputs, parameters map[string]string
	// since is when the story began: earlier invocations are not counted.
	since time.Time
}

// look finds a stack with the caller's credentials.
func look(ctx context.Context, stack string) (*beneath, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("name the stack's region in AWS_REGION")
	}
	b := &beneath{Caller: awscall.Caller{Config: cfg, Now: time.Now, Most: 16 << 20}, stack: stack, since: time.Now()}
	return b, b.describe(ctx)
}

// describe reads the stack's outputs and parameters.
func (b *beneath) describe(ctx context.Context) error {
	found, err := b.Stack(ctx, b.stack)
	local, network := b.Config.BaseEndpoint, (*net.OpError)(nil)
	switch {
	case errors.As(err, &network) && network.Op == "dial" && local != nil:
		return fmt.Errorf("nothing answers at %s: if that is the local AWS, make up deploy-local (%w)", *local, network)
	case err != nil:
		return err
	case found == nil && local != nil:
		return fmt.Errorf("the stack %s is not there: make deploy-local", b.stack)
	case found == nil:
		return fmt.Errorf("the stack %s is not there: sam build && sam deploy, or another AWS_REGION", b.stack)
	}
	b.outputs, b.parameters = found.Outputs, found.Parameters
	return nil
}

// settled counts invocations until two looks three seconds apart agree: logs lag.
func (b *beneath) settled(ctx context.Context, functions ...string) (now []int, err error) {
	for before := []int(nil); ; before = now {
		if now, err = b.starts(ctx, functions...); err != nil || slices.Equal(before, now) {
			return now, err
		}
		if err := sleep(ctx, 3*time.Second); err != nil {
			return nil, err
		}
	}
}

// starts counts the invocations of functions since the story began: each begins
// with a line of the platform in the function's log.
func (b *beneath) starts(ctx context.Context, functions ...string) ([]int, error) {
	counts := make([]int, len(functions))
	for i, name := range functions {
		lines, err := b.log(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			// As text, and as the JSON that Lambda writes where it is told to.
			if strings.HasPrefix(line, "START RequestId: ") || strings.Contains(line, `"type":"platform.start"`) {
				counts[i]++
			}
		}
	}
	return counts, nil
}

// complaints are the last warnings and errors in the functions' logs.
func (b *beneath) complaints(ctx context.Context, most int) (found []string, failed error) {
	for _, name := range functions {
		lines, err := b.log(ctx, name)
		failed = errors.Join(failed, err)
		for _, line := range lines {
			if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
				found = append(found, strings.ToLower(name)+": "+line)
			}
		}
	}
	return found[max(0, len(found)-most):], failed
}

// functions of a stack, as its outputs name them.
var functions = []string{"Start", "Step", "Resume", "Submit", "Query", "Event", "Notice", "Sweep"}

// log returns the lines of a function's log since the story began.
func (b *beneath) log(ctx context.Context, name string) (lines []string, err error) {
	in := map[string]any{"logGroupName": "/aws/lambda/" + b.stack + "-" + strings.ToLower(name), "startTime": b.since.UnixMilli()}
	for {
		var out struct {
			Events    []struct{ Message string }
			NextToken string
		}
		if err := b.JSON(ctx, "logs", "Logs_20140328.FilterLogEvents", "1.1", in, &out); err != nil {
			return lines, err
		}
		for _, e := range out.Events {
			lines = append(lines, e.Message)
		}
		if out.NextToken == "" || out.NextToken == in["nextToken"] {
			return lines, nil
		}
		in["nextToken"] = out.NextToken
	}
}

// emptyQueue waits up to half a minute for the chain's queue to be empty: not one
// message visible, taken or put off.
func (b *beneath) emptyQueue(ctx context.Context) error {
	counts := []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"}
	var out struct{ Attributes map[string]string }
	for range 30 {
		in := map[string]any{"QueueUrl": b.outputs["StepsUrl"], "AttributeNames": counts}
		if err := b.JSON(ctx, "sqs", "AmazonSQS.GetQueueAttributes", "1.0", in, &out); err != nil {
			return err
		}
		if !slices.ContainsFunc(counts, func(name string) bool { return out.Attributes[name] != "0" }) {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return fmt.Errorf("every session rests, and the queue is not empty: %v", out.Attributes)
}

// invoke calls a function of the stack and reads its answer.
func (b *beneath) invoke(ctx context.Context, name string, event, out any) error {
	payload, err := json.Marshal(event)
	if err != nil {
		return err
	}
	raw, err := b.Do(ctx, awscall.Request{
		Service: "lambda", Path: "/2015-03-31/functions/" + b.outputs[name+"Function"] + "/invocations",
		ContentType: "application/json", Body: payload,
	})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// putEvent puts an event onto the stack's bus.
func (b *beneath) putEvent(ctx context.Context, source string, detail any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	in := map[string]any{"Entries": []map[string]any{{
		"Source": source, "DetailType": "smoke", "Detail": string(text), "EventBusName": b.parameters["EventBus"],
	}}}
	var out struct{ FailedEntryCount int }
	err = b.JSON(ctx, "events", "AWSEvents.PutEvents", "1.1", in, &out)
	if err == nil && out.FailedEntryCount > 0 {
		err = errors.New("the bus refused an event")
	}
	return err
}
