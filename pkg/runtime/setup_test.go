package runtime_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestMain makes the codec's encoder and decoder before any bubble of synctest
// does: their channels would belong to that bubble.
func TestMain(m *testing.M) {
	e := journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindStarted, Token: strings.Repeat("x", 4096)}
	raw, err := journal.Encode(&e)
	if err == nil {
		_, err = journal.Decode(raw)
	}
	if err != nil {
		panic(err)
	}
	m.Run()
}

// bundle is a runtime on the embedded engine with everything a test wants to reach.
type bundle struct {
	*runtime.Runtime
	cfg   runtime.Config
	store store.Store
	queue *sqlite.Queue
	dead  *sqlite.Queue
	key   session.Key
}

func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// setup opens an embedded engine in memory and a runtime with the repository's
// agents on it; change may alter the configuration first.
func setup(t testing.TB, change ...func(*runtime.Config)) *bundle {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	registry, err := agents.Registry()
	require.NoError(t, err)
	b := &bundle{store: db.Store(), queue: db.Queue(), dead: db.DeadLetters(), key: session.Key{Tenant: session.DefaultTenant, ID: "s1"}}
	b.cfg = runtime.Config{
		Registry: registry, Store: b.store, Queue: b.queue, DeadLetters: b.dead, Owner: sqlite.NewOwner(),
		Now: time.Now, NewID: newID,
	}
	for _, c := range change {
		c(&b.cfg)
	}
	b.Runtime, err = runtime.New(b.cfg)
	require.NoError(t, err)
	return b
}

func withAgents(t testing.TB, list ...agent.Agent) func(*runtime.Config) {
	t.Helper()
	registry, err := agent.NewRegistry(agent.Config{Agents: list})
	require.NoError(t, err)
	return func(cfg *runtime.Config) { cfg.Registry = registry }
}

// start begins session s1 and drives it until it rests.
func (b *bundle) start(t testing.TB, agentName, input string) {
	t.Helper()
	_, err := b.Start(context.Background(), runtime.StartParams{Key: b.key, Agent: agentName, Input: llm.TextParts(input), Caller: person})
	require.NoError(t, err)
	b.drive(t)
}

var person = runtime.Caller{Who: "ann", From: "test"}

func (b *bundle) drive(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, b.Drive(ctx, b.key, b.queue.Only(b.key)))
}

func (b *bundle) session(t testing.TB) *session.Session {
	t.Helper()
	s, err := b.Session(context.Background(), b.key)
	require.NoError(t, err)
	return s
}

var _ queue.Queue = (*sqlite.Queue)(nil)
