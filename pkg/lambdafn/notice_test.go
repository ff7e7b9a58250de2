package lambdafn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
)

// noticed keeps what a handler had sent.
type noticed struct {
	sent []string
	err  error
}

func (n *noticed) Send(_ context.Context, key session.Key, id string) error {
	n.sent = append(n.sent, key.String()+" "+id)
	if id == "panics" {
		panic("it does")
	}
	return n.err
}

func (n *noticed) Test(_ context.Context, channel, _ string) error {
	n.sent = append(n.sent, "test "+channel)
	return n.err
}

func TestNotice(t *testing.T) {
	t.Parallel()
	_, err := lambdafn.NewNotice(lambdafn.Config{Now: time.Now})
	require.ErrorContains(t, err, "Notices is required")
	n := &noticed{}
	h, err := lambdafn.NewNotice(lambdafn.Config{Now: time.Now, Notices: n})
	require.NoError(t, err)
	invoke := func(event string) (string, error) {
		out, err := h.Invoke(t.Context(), []byte(event))
		return string(out), err
	}
	const event = `{"Records":[{"messageId":"1","body":"{\"v\":1,\"tenant\":\"acme\",\"session\":\"s1\",\"notice\":\"e0000000002\"}"},{"messageId":"2","body":"nonsense"}]}`
	out, err := invoke(event)
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[]}`, out, "what will never be readable is dropped")
	require.Equal(t, []string{"acme/s1 e0000000002"}, n.sent)

	n.err = errors.New("no table")
	out, err = invoke(event)
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[{"itemIdentifier":"1"}]}`, out, "it comes again")
	// The mapping brings one at a time: a failure that is only an answer with its id would be counted by no alarm.
	const alone = `{"Records":[{"messageId":"3","body":"{\"v\":1,\"tenant\":\"acme\",\"session\":\"s1\",\"notice\":\"%s\"}"}]}`
	_, err = invoke(fmt.Sprintf(alone, "e0000000002"))
	require.ErrorContains(t, err, "no table")
	n.err = nil
	_, err = invoke(fmt.Sprintf(alone, "panics"))
	require.ErrorContains(t, err, "it does")
	out, err = invoke(fmt.Sprintf(alone, "e0000000003"))
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[]}`, out)
	_, err = invoke(`{"Records":[]}`)
	require.NoError(t, err)

	out, err = invoke(`{"test":"webhook"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"sent":"webhook"}`, out)
	n.err = errors.New("the server answered 500")
	_, err = invoke(`{"test":"webhook"}`)
	require.ErrorContains(t, err, "the server answered 500")
	for _, wrong := range []string{`{}`, `[]`, `x`, `{"Records":[{"body":"x"}]}`} {
		_, err = invoke(wrong)
		require.Error(t, err, wrong)
	}
}
