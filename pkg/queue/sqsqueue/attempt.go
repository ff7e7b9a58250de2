package sqsqueue

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// attemptError is an attempt that was given up. It calls itself a timeout, which
// the SDK's retryer repeats; the context's own error it would not.
type attemptError struct{ after time.Duration }

func (e *attemptError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }
func (*attemptError) Timeout() bool   { return true }

// within bounds each attempt of a call by the queue's timeout and what the call
// itself waits. It stands below the retryer, so that the next attempt has as long.
func (q *Queue) within(wait time.Duration) func(*sqs.Options) {
	limit := q.cfg.AttemptTimeout + wait
	bound := middleware.FinalizeMiddlewareFunc("AttemptTimeout", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		attempt, cancel := context.WithTimeout(ctx, limit)
		defer cancel() // the answer has been read by then
		var err error
		if in.Request, err = withoutWriterTo(in.Request); err != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, err
		}
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

// withoutWriterTo keeps net/http from losing answers. The SDK closes a request's body
// as soon as the answer begins, while the transport may still be asking the body for
// a byte too many; a closed body with a WriteTo answers that with an error, and the
// transport then closes the connection under the answer. The message has been sent by
// then, and the retryer sends it twice. A body that can only be read says EOF.
func withoutWriterTo(request any) (any, error) {
	r, ok := request.(*smithyhttp.Request)
	if !ok {
		return request, nil
	}
	body, ok := r.GetStream().(io.ReadSeeker)
	if !ok {
		return request, nil
	}
	return r.SetStream(struct{ io.ReadSeeker }{body})
}
