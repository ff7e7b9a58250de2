package cli_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// serveLittle is serve with a server that sends little at a time, as Lambda does.
func (b *bench) serveLittle() {
	b.serveWith(func(_ *http.Request, body []byte) bool { return len(body) < 20_000 })
}

// serveWith is serve with a server that sends what fits (nil: everything), and has no sweep.
func (b *bench) serveWith(fits func(*http.Request, []byte) bool) {
	b.t.Helper()
	a, err := embedded.Open(b.t.Context(), embedded.Config{Registry: b.registry, Data: b.data, Env: func(string) string { return "" }, Now: b.now})
	require.NoError(b.t, err)
	handler, err := httpapi.New(httpapi.Config{Runtime: a.Runtime, AllowUnauthenticated: true, Fits: fits})
	require.NoError(b.t, err)
	server := httptest.NewServer(handler)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		_ = a.Runtime.Work(ctx, a.Queue(), runtime.WorkParams{}) // it ends with ctx
	}()
	b.t.Cleanup(func() {
		server.Close()
		stop()
		<-worked
		require.NoError(b.t, a.Close())
	})
	b.url = server.URL
}

// TestLeftOut: what a server cannot send is not approved unseen, however one tries.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serveLittle()
	const notSent, noYes = "[left out: ", "cannot be shown"
	large := strings.Repeat("x", 30_000)
	begin := func(id string) {
		m := b.start(id, `[{calls: [{call: deploy, with: {service: `+large+`}}, {call: deploy, with: {service: web}}]}, {say: ok}]`, 10)
		require.Contains(t, string(m.PauseReason.PendingToolCalls[0].Arguments), notSent)
		require.JSONEq(t, `{"service":"web"}`, string(m.PauseReason.PendingToolCalls[1].Arguments))
	}
	begin("s")
	require.Contains(t, b.run("show", "s", "--full").ends(0).stdout, notSent)
	for _, args := range [][]string{
		{"submit", "s", "w2-1", "--approve"},
		{"resume", "s", "--approve", "w2-1"},
		{"resume", "s", "--approve-all"},
		{"resume", "s", "--approve-all", "--reject", "w2-2"},
		{"resume", "s", "--approve-all", "--edit", `w2-2={"service":"api"}`},
	} {
		require.Contains(t, b.run(args...).ends(2).stderr, noYes, args)
	}
	b.run("submit", "s", "w2-2", "--approve").ends(10)
	b.run("resume", "s", "--edit", `w2-1={"service":"small"}`, "--approve", "w2-2").ends(0)
	require.Contains(t, b.run("show", "s").ends(0).stdout, `"deployed small"`)

	begin("r")
	b.run("resume", "r", "--approve", "w2-2", "--reject", "w2-1").ends(0)

	begin("p")
	p := b.sit(nil, "resume", "p")
	p.Sees(notSent).Sees(noYes).Sees(prompt).Types("y\n").Sees(noYes).Sees(prompt).Types("e {\"service\": \"tiny\"}\n").Sees("tiny").Sees(prompt).Types("y\n")
	p.Sees(`"service": "web"`).Sees(prompt).Types("y\n").Sees("ok")
	require.Zero(t, p.Leaves())
	require.Contains(t, b.run("show", "p").ends(0).stdout, `"deployed tiny"`)
}
