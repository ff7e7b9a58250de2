// Command toy is a function that does what its event says.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type command struct {
	Do   string
	Text string
	For  time.Duration
	// Records of an event of SQS: the body of the first is the command.
	Records []struct{ MessageID, Body string }
	// Body of an event of an HTTP API, which is told back.
	RequestContext *struct{ HTTP struct{ Method string } }
}

var background = make(chan any, 1)

func handle(ctx context.Context, event json.RawMessage) (any, error) {
	var c command
	if err := json.Unmarshal(event, &c); err != nil {
		return nil, err
	}
	if c.RequestContext != nil {
		return map[string]any{
			"statusCode": 201, "headers": map[string]string{"x-toy": "yes"}, "cookies": []string{"a=b"},
			"body": string(event),
		}, nil
	}
	if len(c.Records) > 0 {
		id := c.Records[0].MessageID
		if err := json.Unmarshal([]byte(c.Records[0].Body), &c); err != nil {
			return nil, err
		}
		switch c.Do {
		case "keep":
			return map[string]any{"batchItemFailures": []map[string]string{{"itemIdentifier": id}}}, nil
		case "answer":
			return json.RawMessage(c.Text), nil
		}
		_, err := c.carryOut(ctx)
		return nil, err
	}
	return c.carryOut(ctx)
}

func (c command) carryOut(ctx context.Context) (any, error) {
	switch c.Do {
	case "echo":
		return c.Text, nil
	case "env":
		return os.Getenv(c.Text), nil
	case "pid":
		return os.Getpid(), nil
	case "context":
		lc, _ := lambdacontext.FromContext(ctx)
		deadline, _ := ctx.Deadline()
		return map[string]any{"id": lc.AwsRequestID, "arn": lc.InvokedFunctionArn, "left": time.Until(deadline).Seconds()}, nil
	case "fail":
		return nil, errors.New(c.Text)
	case "panic":
		panic(c.Text)
	case "exit":
		fmt.Println("about to exit")
		os.Exit(3)
	case "sleep":
		time.Sleep(c.For)
		return "slept", nil
	case "leave":
		go func() {
			answer, err := request(context.WithoutCancel(ctx), c.Text)
			if err != nil {
				answer = err.Error()
			}
			background <- answer
		}()
		return "left", nil
	case "collect":
		return <-background, nil
	case "request":
		return request(ctx, c.Text)
	}
	return nil, fmt.Errorf("what is %q?", c.Do)
}

// request asks DynamoDB, without an SDK, and tells what came back.
func request(ctx context.Context, action string) (any, error) {
	body := []byte(`{"TransactItems":[{},{}]}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+action)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "lost", nil
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, got), err
}

func main() {
	if os.Getenv("TOY_BROKEN") != "" {
		fmt.Fprintln(os.Stderr, "this deployment is bad")
		os.Exit(1)
	}
	lambda.Start(handle)
}
