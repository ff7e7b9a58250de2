package lambdafn_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var _ lambda.Handler = lambdafn.Handler(nil)

func step(t testing.TB, w *world) lambdafn.Handler {
	t.Helper()
	h, err := lambdafn.NewStep(w.cfg)
	return need(t, h, err)
}

func TestStep_one_message_is_one_step(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := step(t, w)
	wake := w.start("- {repeat: 3, call: echo, with: {text: a}}\n- say: done")
	for seq := int64(2); seq <= 5; seq++ {
		require.Equal(t, seq, wake.Seq)
		require.Empty(t, deliver(t, h, wakeMessage(t, "m", wake)))
		if sent := w.queue.takeSent(); len(sent) > 0 {
			require.Len(t, sent, 1)
			wake = sent[0]
		}
	}
	require.Equal(t, "done", w.stands(wake.Key()).Text)
	require.Empty(t, w.queue.put)
}

func TestStep_nothing_to_report_is_an_empty_list(t *testing.T) {
	t.Parallel()
	raw, err := step(t, newWorld(t)).Invoke(t.Context(), sqsEvent(t))
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[]}`, string(raw))
}

func TestStep_what_is_no_SQS_event_is_an_error(t *testing.T) {
	t.Parallel()
	h := step(t, newWorld(t))
	for _, raw := range []string{``, `{}`, `[]`, `7`, `{"Records":null}`, `{"Records":{}}`, `{"Records":[{}]}`, `{"Records":[7]}`, `{"Records":[{"messageId":""}]}`} {
		_, err := h.Invoke(t.Context(), []byte(raw))
		require.ErrorContains(t, err, "not an SQS event", raw)
	}
}

func TestStep_unreadable_messages_are_dropped_and_logged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := step(t, w)
	for i, body := range []string{"", "secret", "null", "[]", `{"v":0}`, `{"v":1,"tenant":"../x","session":"s","seq":2,"kind":"step"}`, `{"v":1,"tenant":"a","session":"s","seq":2,"kind":"dance"}`} {
		require.Empty(t, deliver(t, h, message(strconv.Itoa(i), body)), body)
	}
	require.Empty(t, w.queue.put)
	w.logs("unreadable message dropped", `"message":"0"`)
	require.NotContains(t, w.log.String(), "secret")
}

func TestStep_a_newer_message_is_kept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, []string{"m"}, deliver(t, step(t, w), message("m", `{"v":2,"tenant":"acme","session":"s1","kind":"later"}`)))
	require.Equal(t, []postponed{{"receipt-m", time.Minute}}, w.queue.put)
}

func TestStep_a_message_whose_step_is_being_worked_on_is_kept_until_the_lease_ends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wake := w.start("- say: hi")
	_, err := w.store.Claim(t.Context(), store.ClaimParams{
		Key: wake.Key(), Mode: store.ClaimTake, Owner: "somebody", Seq: wake.Seq, Now: w.clock.Now(), Until: w.clock.Now().Add(7 * time.Second),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"m"}, deliver(t, step(t, w), wakeMessage(t, "m", wake)))
	require.Equal(t, []postponed{{"receipt-m", 7 * time.Second}}, w.queue.put)
	w.clock.advance(8 * time.Second)
	require.Empty(t, deliver(t, step(t, w), wakeMessage(t, "m", wake)))
	require.Equal(t, "hi", w.stands(wake.Key()).Text)
}

func TestStep_a_failed_message_comes_again_soon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := step(t, w)
	wake := w.start("- say: hi")
	w.store.claim = func(context.Context) error { return errMoody }
	m := wakeMessage(t, "m", wake)
	for receives, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second, 6: time.Minute, 1000: time.Minute} {
		w.queue.put = nil
		m.Attributes["ApproximateReceiveCount"] = strconv.Itoa(receives)
		require.Equal(t, []string{"m"}, deliver(t, h, m))
		require.Len(t, w.queue.put, 1)
		require.GreaterOrEqual(t, w.queue.put[0].delay, want)
		require.LessOrEqual(t, w.queue.put[0].delay, want+want/4)
	}
	w.logs("message failed", `"session":"`+wake.ID+`"`)

	w.store.claim = nil
	require.Empty(t, deliver(t, h, m))
	require.Equal(t, "hi", w.stands(wake.Key()).Text)
}

func TestStep_retries_are_spread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := step(t, w)
	wake := w.start("- say: hi")
	w.store.claim = func(context.Context) error { return errMoody }
	for i := range 20 {
		deliver(t, h, wakeMessage(t, strconv.Itoa(i), wake))
	}
	seen := map[time.Duration]bool{}
	for _, p := range w.queue.put {
		seen[p.delay] = true
	}
	require.Greater(t, len(seen), 10)
}

func TestStep_a_message_that_cannot_be_put_off_is_reported_all_the_same(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wake := w.start("- say: hi")
	w.store.claim = func(context.Context) error { return errMoody }
	w.queue.refuse = errMoody
	require.Equal(t, []string{"m"}, deliver(t, step(t, w), wakeMessage(t, "m", wake)))
	w.queue.panicking = true
	require.Equal(t, []string{"m"}, deliver(t, step(t, w), wakeMessage(t, "m", wake)))
	w.logs("message not put off")
}

func TestStep_a_panic_fails_its_message_alone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad, good := w.start("- say: bad"), w.start("- say: good")
	panics := true
	w.store.read = func() {
		if panics {
			panics = false
			panic(strings.Repeat("x", 1000))
		}
	}
	h := step(t, w)
	require.Equal(t, []string{"1"}, deliver(t, h, wakeMessage(t, "1", bad)))
	require.Empty(t, deliver(t, h, wakeMessage(t, "2", good)))
	require.Empty(t, deliver(t, h, wakeMessage(t, "1", bad)))
	require.Equal(t, "good", w.stands(good.Key()).Text)
	require.Equal(t, "bad", w.stands(bad.Key()).Text)
	w.logs("panic: xxx", `"stack":`)
	require.NotContains(t, w.log.String(), strings.Repeat("x", 400))
}

func TestStep_a_batch_is_worked_on_side_by_side(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.start("- say: a"), w.start("- say: b")
	got := deliver(t, step(t, w), wakeMessage(t, "a", a), message("x", "?"), message("n", `{"v":9}`), wakeMessage(t, "b", b), wakeMessage(t, "twice", b))
	require.Contains(t, got, "n")
	require.NotContains(t, got, "a")
	require.NotContains(t, got, "x")
	require.Equal(t, "a", w.stands(a.Key()).Text)
	require.Equal(t, "b", w.stands(b.Key()).Text)
}

func TestStep_ends_before_Lambda_does(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := step(t, w)
	wake := w.start("- say: hi")
	for left, margin := range map[time.Duration]time.Duration{
		5 * time.Minute: 10 * time.Second, 30 * time.Second: 10 * time.Second, 15 * time.Second: 5 * time.Second, 3 * time.Second: time.Second,
	} {
		var soft time.Time
		w.store.claim = func(ctx context.Context) error {
			soft, _ = ctx.Deadline()
			return errMoody
		}
		_, err := h.Invoke(lambdaContext(t, left), sqsEvent(t, wakeMessage(t, "m", wake)))
		require.NoError(t, err)
		require.Equal(t, epoch.Add(left-margin), soft, left)
	}
	require.Len(t, w.queue.put, 4, "messages are put off after the soft deadline")
	_, err := h.Invoke(t.Context(), sqsEvent(t, wakeMessage(t, "m", wake)))
	require.NoError(t, err, "without a deadline there is none")
}

func TestStep_logs_the_request(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wake := w.start("- call: echo\n  with: {text: secret-argument}\n- say: secret-text")
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1"})
	_, err := step(t, w).Invoke(ctx, sqsEvent(t, wakeMessage(t, "m", wake)))
	require.NoError(t, err)
	w.logs(`"requestId":"r-1"`, `"session":"`+wake.ID+`"`, `"tenant":"default"`, `"seq":2`, `"msg":"message done"`)
	require.NotContains(t, w.log.String(), "secret")
}

func sweeper(t testing.TB, w *world) lambdafn.Handler {
	t.Helper()
	h, err := lambdafn.NewSweep(w.cfg)
	return need(t, h, err)
}

func TestSweep_the_schedule_sweeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wake := w.start("- say: hi")
	w.clock.advance(time.Hour)
	for i, event := range []string{`{"detail-type":"Scheduled Event","source":"aws.events"}`, `{}`, `null`, `"now"`} {
		raw, err := sweeper(t, w).Invoke(t.Context(), []byte(event))
		require.NoError(t, err)
		if i == 0 {
			require.JSONEq(t, `{"resent":1,"resumed":0,"expired":0,"escalated":0,"reminded":0,"cancelled":0,"removed":0}`, string(raw))
		} else {
			require.JSONEq(t, `{"resent":0,"resumed":0,"expired":0,"escalated":0,"reminded":0,"cancelled":0,"removed":0}`, string(raw))
		}
	}
	sent := w.queue.takeSent()
	require.Equal(t, []journal.Wake{wake}, sent)
	w.logs(`"msg":"swept"`, `"resent":1`)
}

func TestSweep_an_error_is_told(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := sweeper(t, w).Invoke(ctx, []byte(`{}`))
	require.ErrorIs(t, err, context.Canceled)
	w.logs("sweep not finished")
}

func TestSweep_dead_letters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := sweeper(t, w)
	wake := w.start("- say: hi")
	ended := w.start("- say: bye")
	require.Empty(t, deliver(t, step(t, w), wakeMessage(t, "m", ended)))
	w.queue.takeSent()

	require.Empty(t, deliver(t, h, wakeMessage(t, "a", wake), wakeMessage(t, "b", ended), message("c", "?")))
	again := w.queue.takeSent()
	require.Len(t, again, 1, "a session that never died is tried afresh, one that has ended is left alone")
	require.Equal(t, wake.Key(), again[0].Key())
	require.Positive(t, again[0].Delay)

	_, err := w.store.Claim(t.Context(), store.ClaimParams{
		Key: wake.Key(), Mode: store.ClaimTake, Owner: "somebody", Seq: wake.Seq, Now: w.clock.Now(), Until: w.clock.Now().Add(7 * time.Second),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"d", "e"}, deliver(t, h, wakeMessage(t, "d", wake), message("e", `{"v":2}`)))
	require.ElementsMatch(t, []postponed{{"receipt-d", 7 * time.Second}, {"receipt-e", time.Minute}}, w.dead.put)
	require.Empty(t, w.queue.put, "dead letters are put off in their own queue")
	w.logs("dead letter")
}

func TestSweep_other_records_are_refused(t *testing.T) {
	t.Parallel()
	_, err := sweeper(t, newWorld(t)).Invoke(t.Context(), []byte(`{"Records":[{"eventSource":"aws:s3"}]}`))
	require.ErrorContains(t, err, "aws:s3")
}

func TestHandlersNeedTheirParts(t *testing.T) {
	t.Parallel()
	_, err := lambdafn.NewStep(lambdafn.Config{})
	require.ErrorContains(t, err, "Runtime")
	require.ErrorContains(t, err, "Now")
	w := newWorld(t)
	w.cfg.Queue, w.cfg.DeadLetters = nil, nil
	_, err = lambdafn.NewStep(w.cfg)
	require.ErrorContains(t, err, "Queue")
	_, err = lambdafn.NewSweep(w.cfg)
	require.ErrorContains(t, err, "DeadLetters")
}

func FuzzRecords(f *testing.F) {
	w := newWorld(f)
	step, sweep := step(f, w), sweeper(f, w)
	wake := w.start("- say: hi")
	f.Add(sqsEvent(f, wakeMessage(f, "m", wake)))
	f.Add(sqsEvent(f, message("m", `{"v":2}`), message("n", "?")))
	f.Add([]byte(`{"Records":[{"messageId":"a","body":7}]}`))
	f.Add([]byte(`{"records":[{"MESSAGEID":"a","body":"{}","attributes":{"ApproximateReceiveCount":"99999999999999999999"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, h := range []lambdafn.Handler{step, sweep} {
			answer, err := h.Invoke(t.Context(), raw)
			if err == nil {
				require.True(t, json.Valid(answer))
			}
		}
	})
}
