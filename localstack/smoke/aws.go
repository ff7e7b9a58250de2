package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/adjourn/adjourn/internal/awscall"
)

// beneath is what lies under the API of a stack: its functions, queue and bus.
// It makes five requests of five services, whose SDKs would be most of this program.
type beneath struct {
	cfg   aws.Config
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
	b := &beneath{cfg: cfg, stack: stack, outputs: map[string]string{}, parameters: map[string]string{}, since: time.Now()}
	return b, b.describe(ctx)
}

// describe reads the stack's outputs and parameters.
func (b *beneath) describe(ctx context.Context) error {
	form := url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {b.stack}}
	raw, err := b.do(ctx, awscall.Request{Service: "cloudformation", ContentType: "application/x-www-form-urlencoded", Body: []byte(form.Encode())})
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" && b.cfg.BaseEndpoint != nil {
		return fmt.Errorf("nothing answers at %s: if that is the local AWS, make up deploy-local (%w)", *b.cfg.BaseEndpoint, network)
	}
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		how := "sam build && sam deploy, or another AWS_REGION"
		if b.cfg.BaseEndpoint != nil {
			how = "make deploy-local"
		}
		return fmt.Errorf("the stack %s is not there: %s", b.stack, how)
	}
	if err != nil {
		return err
	}
	type pair struct {
		Output      string `xml:"OutputKey"`
		OutputValue string
		Parameter   string `xml:"ParameterKey"`
		Value       string `xml:"ParameterValue"`
	}
	var found struct {
		Stack []struct {
			Outputs    []pair `xml:"Outputs>member"`
			Parameters []pair `xml:"Parameters>member"`
		} `xml:"DescribeStacksResult>Stacks>member"`
	}
	if err := xml.Unmarshal(raw, &found); err != nil || len(found.Stack) != 1 {
		return fmt.Errorf("stack %s: %d found: %w", b.stack, len(found.Stack), orNone(err))
	}
	for _, o := range found.Stack[0].Outputs {
		b.outputs[o.Output] = o.OutputValue
	}
	for _, p := range found.Stack[0].Parameters {
		b.parameters[p.Parameter] = p.Value
	}
	return nil
}

// settled counts invocations until two looks three seconds apart agree: logs lag.
func (b *beneath) settled(ctx context.Context, functions ...string) ([]int, error) {
	before, err := b.starts(ctx, functions...)
	for err == nil {
		if err = sleep(ctx, 3*time.Second); err != nil {
			break
		}
		var now []int
		if now, err = b.starts(ctx, functions...); err == nil && slices.Equal(before, now) {
			return now, nil
		}
		before = now
	}
	return nil, err
}

// starts counts the invocations of functions since the story began: each begins
// with a line of the platform in the function's log.
func (b *beneath) starts(ctx context.Context, functions ...string) ([]int, error) {
	counts := make([]int, len(functions))
	for i, name := range functions {
		for line, err := range b.log(ctx, name) {
			if err != nil {
				return nil, err
			}
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
		for line, err := range b.log(ctx, name) {
			failed = errors.Join(failed, err)
			if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
				found = append(found, strings.ToLower(name)+": "+line)
			}
		}
	}
	return found[max(0, len(found)-most):], failed
}

// functions of a stack, as its outputs name them.
var functions = []string{"Start", "Step", "Resume", "Submit", "Query", "Event", "Sweep"}

// log yields the lines of a function's log since the story began.
func (b *beneath) log(ctx context.Context, name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := map[string]any{"logGroupName": "/aws/lambda/" + b.stack + "-" + strings.ToLower(name), "startTime": b.since.UnixMilli()}
		for {
			var out struct {
				Events []struct {
					Message string `json:"message"`
				} `json:"events"`
				NextToken string `json:"nextToken"`
			}
			if err := b.json(ctx, "logs", "Logs_20140328.FilterLogEvents", "1.1", in, &out); err != nil {
				yield("", err)
				return
			}
			for _, e := range out.Events {
				if !yield(e.Message, nil) {
					return
				}
			}
			if out.NextToken == "" || out.NextToken == in["nextToken"] {
				return
			}
			in["nextToken"] = out.NextToken
		}
	}
}

// emptyQueue waits up to half a minute for the chain's queue to be empty: not one
// message visible, taken or put off.
func (b *beneath) emptyQueue(ctx context.Context) error {
	var out struct{ Attributes map[string]string }
	for range 30 {
		in := map[string]any{"QueueUrl": b.outputs["StepsUrl"], "AttributeNames": []string{
			"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
		}}
		if err := b.json(ctx, "sqs", "AmazonSQS.GetQueueAttributes", "1.0", in, &out); err != nil {
			return err
		}
		empty := 0
		for _, n := range out.Attributes {
			if n == "0" {
				empty++
			}
		}
		if empty == 3 {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return fmt.Errorf("every session rests, and the queue is not empty: %v", out.Attributes)
}

// invoke calls a function of the stack and reads its answer.
func (b *beneath) invoke(ctx context.Context, name string, payload []byte, out any) error {
	raw, err := b.do(ctx, awscall.Request{
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
	if err := b.json(ctx, "events", "AWSEvents.PutEvents", "1.1", in, &out); err != nil {
		return err
	}
	if out.FailedEntryCount > 0 {
		return errors.New("the bus refused an event")
	}
	return nil
}

func (b *beneath) do(ctx context.Context, r awscall.Request) ([]byte, error) {
	return awscall.Caller{Config: b.cfg, Now: time.Now, Most: 16 << 20}.Do(ctx, r)
}

// json makes a request of a service that speaks JSON.
func (b *beneath) json(ctx context.Context, service, target, version string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	raw, err := b.do(ctx, awscall.Request{Service: service, Target: target, ContentType: "application/x-amz-json-" + version, Body: body})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}
