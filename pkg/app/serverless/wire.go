package serverless

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// The SDK's retries of a send: quick ones, because a step that waits holds a
// lease and is billed. The store retries for itself, and both bound their attempts.
const (
	sendAttempts = 5
	sendBackoff  = time.Second
)

// loadAWS reads the SDK's configuration of this process.
func loadAWS(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.HTTPClient == nil { // the environment wants nothing special
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	cfg.HTTPClient = plainBodies{cfg.HTTPClient}
	return cfg, nil
}

// connect makes the clients and the adapters on them. It asks nothing of anybody.
func connect(cfg aws.Config, s Settings, c Config, log *slog.Logger) (app.Parts, error) {
	if cfg.Region == "" {
		return app.Parts{}, fmt.Errorf("%w: AWS_REGION=%q: name the region of the table and the queue", app.ErrInvalidSetting, "")
	}
	store, err := dynamostore.New(dynamostore.Config{
		DynamoDB: dynamodb.NewFromConfig(cfg), Table: s.Table,
		Blobs: s3.NewFromConfig(cfg, func(o *s3.Options) {
			// Local endpoints have no host name for each bucket.
			o.UsePathStyle = o.BaseEndpoint != nil || c.Env("AWS_ENDPOINT_URL") != "" || c.Env("AWS_ENDPOINT_URL_S3") != ""
		}),
		Bucket: s.Bucket, Now: c.Now, NewID: app.NewID,
	})
	if err != nil {
		return app.Parts{}, err
	}
	client := sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = sendAttempts, sendBackoff })
	})
	parts := app.Parts{Store: store}
	if parts.Queue, err = sqsqueue.New(sqsqueue.Config{SQS: client, URL: s.QueueURL, Log: log}); err != nil {
		return app.Parts{}, err
	}
	if s.DeadLettersURL != "" {
		if parts.DeadLetters, err = sqsqueue.New(sqsqueue.Config{SQS: client, URL: s.DeadLettersURL, Log: log}); err != nil {
			return app.Parts{}, err
		}
	}
	return parts, nil
}
