// Package retry repeats a request of DynamoDB or S3 until it is answered.
package retry

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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

// ErrBroken is the error of an attempt whose answer began and broke off.
var ErrBroken = errors.New("the answer broke off")

// Config says how often a request is made, and how long each attempt may take.
type Config struct {
	// Table is named in errors.
	Table string
	// Timeout bounds one attempt; one that moves a large value has a second more for
	// each megabyte.
	Timeout time.Duration
	// Attempts is how often a request is made before the service counts as unavailable.
	Attempts int
	// NewID is where the random part of a pause comes from.
	NewID func() string
}

// Sender makes requests.
type Sender struct {
	cfg      Config
	standard *retry.Standard // decides which errors of the SDK are worth a retry
}

// New returns a sender; all fields of the configuration are required.
func New(cfg Config) *Sender { return &Sender{cfg: cfg, standard: retry.NewStandard()} }

// DynamoDB makes a request of DynamoDB until it is answered. What comes back is
// an answer, a refusal ([types.ConditionalCheckFailedException],
// [types.TransactionCanceledException]), the end of ctx with its cause, or an
// error of the store.
func DynamoDB[I, O any](ctx context.Context, s *Sender, do func(context.Context, I, ...func(*dynamodb.Options)) (O, error), in I) (O, error) {
	var out O
	err := s.Send(ctx, 0, func(ctx context.Context) (err error) {
		out, err = do(ctx, in, once)
		return err
	})
	return out, s.explain(err)
}

// once keeps the SDK from retrying by itself: the SDK would hide that an attempt was the second,
// does not retry everything that must be, and does not have our deadlines.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// Send calls do until it succeeds, is refused for good, or the attempts or ctx
// are used up. size is how many bytes of a large value travel.
func (s *Sender) Send(ctx context.Context, size int64, do func(context.Context) error) error {
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
func (s *Sender) pause(ctx context.Context, attempt int) error {
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

// Again pauses before what a batch left undone is asked for once more.
func (s *Sender) Again(ctx context.Context, attempt int) error {
	if attempt >= s.cfg.Attempts {
		return fmt.Errorf("%w: throttled %d times", store.ErrUnavailable, attempt)
	}
	return s.pause(ctx, attempt)
}

// chance returns a number from 0 up to 1.
func (s *Sender) chance() float64 {
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

// ConditionFailed reports whether a transaction was cancelled because the condition
// of this item failed.
func ConditionFailed(r types.CancellationReason) bool { return aws.ToString(r.Code) == reasonCondition }

// passing reports whether the same request may well succeed a moment later.
func (s *Sender) passing(err error) bool {
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
	case errors.As(err, &garbled), errors.Is(err, ErrBroken): // the answer broke off
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
func (s *Sender) explain(err error) error {
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

// Each calls do for 0 to n-1, so many at a time, and returns the first error by number.
func Each(n, atOnce int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	errs := make([]error, n)
	turns := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
