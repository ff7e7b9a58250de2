package cli_test

import (
	"context"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
)

// both tells a story twice: on a data file, and over HTTP to a server on one.
// What commands print, ask and exit with must not tell the two apart.
func both(t *testing.T, story func(t *testing.T, b *bench)) {
	t.Helper()
	bothOver(t, (*bench).serve, story)
}

func bothOver(t *testing.T, serve func(*bench), story func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run("data", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.told = true
		story(t, b)
	})
	t.Run("url", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.told = true
		serve(b)
		story(t, b)
	})
}

// toldWords are the words of all commands in stories that are told with both.
var toldWords sync.Map

// untold returns the commands that speak to servers and are in no story told with both.
// Only a run of all tests can say that: of some of them it returns none.
func untold() (commands []string) {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			return nil
		}
	}
	for _, words := range hostileCommands {
		if _, ok := toldWords.Load(words[0]); !ok && !strings.HasPrefix(words[0], "__") && !slices.Contains(commands, words[0]) {
			commands = append(commands, words[0])
		}
	}
	return commands
}

// serve puts a server in front of the bench's data file and has commands speak to it.
func (b *bench) serve() {
	b.t.Helper()
	env := maps.Clone(b.env) // the server's own: commands are given more
	a, err := embedded.Open(b.t.Context(), embedded.Config{Registry: b.registry, Data: b.data, Env: func(name string) string { return env[name] }, Now: b.now})
	require.NoError(b.t, err)
	server, err := dev.Listen(b.t.Context(), dev.Config{App: a, Addr: "127.0.0.1:0", Keys: dev.KeysBeside(b.data), Who: "ada"})
	require.NoError(b.t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	b.t.Cleanup(func() {
		stop()
		require.NoError(b.t, <-ended)
		require.NoError(b.t, a.Close())
	})
	b.url, b.token = server.URL(), server.Key().Text
	b.env["ADJOURN_TOKEN"] = b.token
}

// where are the flags that lead to the bench's sessions.
func (b *bench) where() []string {
	if b.url != "" {
		return []string{"--url", b.url}
	}
	return []string{"--data", b.data}
}

// words are the same flags as they stand in a printed command.
func (b *bench) words() string {
	if b.url != "" {
		return "--url " + b.url
	}
	return "--data '" + b.data + "'"
}

// environ is the environment of a process of its own.
func (b *bench) environ(more ...string) []string {
	return append(append(os.Environ(), asProgram+"=1", "ADJOURN_TOKEN="+b.token), more...)
}

// sameAs returns what was printed over HTTP as it would have been on the data file.
func (b *bench) sameAs(text string) string {
	if b.url == "" {
		return text
	}
	require.NotContains(b.t, text, b.token)
	return strings.NewReplacer(b.words(), "--data '"+b.data+"'", b.url, b.data).Replace(text)
}
