package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/adjourn/adjourn/pkg/store"
)

// The pauses between attempts grow from the first to the last.
const (
	firstPause = 25 * time.Millisecond
	lastPause  = time.Second
)

// bytesPerSecond is the slowest a large value may travel.
const bytesPerSecond = 1 << 20

// errSlow is the cause with which one attempt ends.
var errSlow = errors.New("no answer in time")

// request makes a request of DynamoDB until it is answered. What comes back is
// an answer, a refusal ([types.ConditionalCheckFailedException],
// [types.TransactionCanceledException]), the end of ctx with its cause, or an
// error of this adapter.
func request[I, O any](ctx context.Context, s *Store, do func(context.Context, I, ...func(*dynamodb.Options)) (O, error), in I) (O, error) {
	var out O
	err := s.retry(ctx, 0, func(ctx context.Context) (err error) {
		out, err = do(ctx, in, once)
		return err
	})
	return out, s.explain(err)
}

// once keeps the SDK from retrying by itself: the SDK would hide that an attempt was the second,
// does not retry everything that must be, and does not have our deadlines.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

func onceS3(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// retry calls do until it succeeds, is refused for good, or the attempts or ctx
// are used up. size is how many bytes of a large value travel.
func (s *Store) retry(ctx context.Context, size int64, do func(context.Context) error) error {
	timeout := s.cfg.Timeout + time.Duration(size)*time.Second/bytesPerSecond
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		bounded, cancel := context.WithTimeoutCause(ctx, timeout, errSlow)
		err := do(bounded)
		slow := context.Cause(bounded) == errSlow //nolint:errorlint // our own value, as it was given
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w (%s)", context.Cause(ctx), err.Error())
		case slow:
			err = fmt.Errorf("%w after %s (%s)", errSlow, timeout, err.Error())
		case !s.passing(err):
			return err
		}
		if attempt >= s.cfg.Attempts {
			return fmt.Errorf("%w after %d attempts: %s", store.ErrUnavailable, attempt, err.Error())
		}
		if err := s.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// pause waits before the next attempt: longer each time, and a random part between half and all
// of it, so that callers whose requests collided do not collide again.
func (s *Store) pause(ctx context.Context, attempt int) error {
	most := min(lastPause, firstPause<<min(attempt-1, 10))
	timer := time.NewTimer(time.Duration(float64(most) * (0.5 + 0.5*s.chance())))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeIDLength is 60 bits of a digest.
const writeIDLength = 10

// newWrite names one call that writes, however often its request is made.
func (s *Store) newWrite() string { return contentHash([]byte(s.cfg.NewID()))[:writeIDLength] }

// chance returns a number from 0 up to 1.
func (s *Store) chance() float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.cfg.NewID()))
	return float64(h.Sum64()) / math.MaxUint64
}

// The reasons for which one item cancels a transaction.
const (
	reasonNone       = "None"
	reasonCondition  = "ConditionalCheckFailed"
	reasonConflict   = "TransactionConflict"
	reasonThrottled  = "ThrottlingError"
	reasonThroughput = "ProvisionedThroughputExceeded"
)

// passing reports whether the same request may well succeed a moment later.
func (s *Store) passing(err error) bool {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		return passingReasons(cancelled.CancellationReasons)
	}
	var (
		conflict   *types.TransactionConflictException
		inProgress *types.TransactionInProgressException
		garbled    *smithy.DeserializationError
		apiErr     smithy.APIError
	)
	switch {
	case errors.As(err, &conflict), errors.As(err, &inProgress):
		return true
	case errors.As(err, &garbled), errors.Is(err, errBroken): // the answer broke off
		return true
	case errors.As(err, &apiErr) && apiErr.ErrorFault() == smithy.FaultServer:
		return true
	}
	return s.standard.IsErrorRetryable(err)
}

// passingReasons reports whether nothing but conflicts and throttling cancelled
// a transaction. A failed condition beside them decides it for good.
func passingReasons(reasons []types.CancellationReason) bool {
	some := false
	for _, r := range reasons {
		switch aws.ToString(r.Code) {
		case reasonNone, "":
		case reasonConflict, reasonThrottled, reasonThroughput:
			some = true
		default:
			return false
		}
	}
	return some
}

// explain turns an error of DynamoDB into one of the port. Refusals pass as they
// are, for their reader decides; so does what is not DynamoDB's. The SDK's errors
// stop here: their text goes on, their types do not.
func (s *Store) explain(err error) error {
	var (
		refused   *types.ConditionalCheckFailedException
		cancelled *types.TransactionCanceledException
		noTable   *types.ResourceNotFoundException
		apiErr    smithy.APIError
		opErr     *smithy.OperationError
	)
	switch {
	case err == nil, errors.As(err, &refused), errors.As(err, &cancelled):
		return err
	case errors.As(err, &noTable):
		return fmt.Errorf("%w: table %q, or an index of it, does not exist in this account and region: deploy the template, or correct the table's name, region or endpoint (%s)", store.ErrUnavailable, s.cfg.Table, err.Error())
	case errors.As(err, &apiErr) && mistakes[apiErr.ErrorCode()]:
		return fmt.Errorf("DynamoDB does not take the request: %s", err.Error())
	case errors.As(err, &apiErr), errors.As(err, &opErr):
		return fmt.Errorf("%w: %s", store.ErrUnavailable, err.Error())
	}
	return err
}

// mistakes are codes that no later try and no other state of the service changes.
var mistakes = map[string]bool{
	"ValidationException": true, "SerializationException": true,
	"IdempotentParameterMismatchException": true, "ItemCollectionSizeLimitExceededException": true,
}
