package dev

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/httpapi"
)

// pipe is a listener whose one connection is in memory.
type pipe struct {
	conns chan net.Conn
}

func (p pipe) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipe) Close() error   { return nil }
func (p pipe) Addr() net.Addr { return &net.TCPAddr{} }

// TestPatient: who sends half a request does not hold a connection for ever, and
// who waits for an answer as long as he may gets it.
func TestPatient(t *testing.T) {
	t.Parallel()
	for sent, most := range map[string]time.Duration{
		"": time.Minute, "GET / HTTP/1.1\r\nHost": time.Minute, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf": 2 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			server := patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(w, r.Body)
			}))
			here, there := net.Pipe()
			conns := make(chan net.Conn, 1)
			conns <- there
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(pipe{conns}) }()
			began := time.Now()
			_, err := io.WriteString(here, sent)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, here) // until the server hangs up
			require.LessOrEqual(t, time.Since(began), most, sent)
			close(conns)
			require.Error(t, <-ended)
			require.NoError(t, server.Close())
		})
	}
	require.Greater(t, patient(nil).WriteTimeout, 2*httpapi.DefaultMaxWait)
}
