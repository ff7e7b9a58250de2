package sqsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
)

// attemptError is an attempt that was stopped. It reports itself as a timeout, because the SDK's
// retryer repeats a timeout but not the context's own error.
type attemptError struct{ after time.Duration }

func (e *attemptError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }
func (*attemptError) Timeout() bool   { return true }

// within bounds each attempt of a call by the queue's timeout and the time the call itself waits.
// It is applied below the retryer, so that the next attempt has as long.
func (q *Queue) within(wait time.Duration) func(*sqs.Options) {
	limit := q.cfg.AttemptTimeout + wait
	bound := middleware.FinalizeMiddlewareFunc("AttemptTimeout", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		attempt, cancel := context.WithTimeout(ctx, limit)
		defer cancel() // the answer has been read by then
		out, metadata, err := next.HandleFinalize(attempt, in)
		if err != nil && attempt.Err() != nil && ctx.Err() == nil {
			err = &attemptError{after: limit}
		}
		return out, metadata, err
	})
	return sqs.WithAPIOptions(func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(bound, "Retry", middleware.After)
	})
}
