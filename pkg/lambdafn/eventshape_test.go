package lambdafn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEvent_names_are_exact: what only looks like an event of AWS goes through
// the template, as it is.
func TestEvent_names_are_exact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := eventer(t, w, `{"agent":"lab","input":"{{.say}}"}`)
	for i, event := range []string{
		`{"say":"hi","records":[{"eventSource":"aws:sqs"}]}`, `{"say":"hi","RECORDS":[7]}`, `{"say":"hi","Records":[]}`, `{"say":"hi","Records":"none"}`,
		`{"say":"hi","event":"s3:TestEvent"}`, `{"say":"hi","Event":"s3:TestEvent"}`, `{"say":"hi","service":"Amazon S3","event":"s3:TestEvent"}`,
		`{"say":"hi","ID":"e","Detail-Type":"x"}`, `{"say":"hi","id":7,"detail-type":"x"}`, `{"say":"hi","id":"e","detail-type":7}`,
	} {
		w.cfg.EventTenant = fmt.Sprint("t", i) // they all come under one request id
		got := starts(t, eventer(t, w, `{"agent":"lab","input":"{{.say}}"}`), event)
		require.Len(t, got, 1, event)
		require.False(t, got[0].Replayed, event)
		require.Equal(t, "hi", w.said(got[0].SessionID), event)
	}
	require.Empty(t, starts(t, h, `{"say":"hi","Service":"Amazon S3","Event":"s3:TestEvent"}`))
	w.logs(`"who":"invoke"`)
}

// TestEvent_versions_are_apart: two versions of one object, written at one time
// with one content, are two events.
func TestEvent_versions_are_apart(t *testing.T) {
	t.Parallel()
	h := eventer(t, newWorld(t), `{"agent":"lab","input":"{{.s3.object.key}}"}`)
	of := func(version string) startedSession {
		return starts(t, h, `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"k","eTag":"t","sequencer":"1","versionId":"`+version+`"}}}]}`)[0]
	}
	first := of("v1")
	require.False(t, first.Replayed)
	require.True(t, of("v1").Replayed)
	require.False(t, of("v2").Replayed)
}
