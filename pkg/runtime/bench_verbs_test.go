package runtime_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// onFile is a bundle over a data file, as the CLI has it.
func onFile(b *testing.B, change ...func(*runtime.Config)) (*bundle, *sqlite.DB) {
	b.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(b.TempDir(), "bench.db")})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	return setup(b, append(change, func(cfg *runtime.Config) {
		cfg.Store, cfg.Queue, cfg.DeadLetters, cfg.Owner = openStore(b, db), db.Queue(), db.DeadLetters(), db.Owner()
		cfg.StepsPerInvocation = embeddedSteps
	})...), db
}

// BenchmarkStart begins sessions, with a key and without; nothing works on them.
func BenchmarkStart(b *testing.B) {
	for _, name := range []string{"plain", "keyed"} {
		b.Run(name, func(b *testing.B) {
			w, _ := onFile(b)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				p := runtime.StartParams{Key: benchKey(i), Agent: "lab", Caller: person, Input: llm.TextParts("- say: done\n")}
				if name == "keyed" {
					p.IdempotencyKey = fmt.Sprintf("k%d", i)
				}
				_, err := w.Start(context.Background(), p)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkAnswer approves a call and works until the next one is asked for: a
// submit, a resumption, a side effect, a suspension.
func BenchmarkAnswer(b *testing.B) {
	ctx := context.Background()
	w, db := onFile(b)
	w.key, w.queue = benchKey(0), db.Queue()
	w.start(b, "lab", fmt.Sprintf("- repeat: %d\n  call: deploy\n  with: {service: web}\n- say: done\n", b.N+1))
	yes := true
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		waits := w.session(b).Waits
		require.Len(b, waits, 1)
		_, err := w.Submit(ctx, runtime.SubmitParams{
			Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerApproval, Wait: waits[0].ID, ApprovalID: waits[0].Nonce, Approved: &yes},
		})
		require.NoError(b, err)
		require.NoError(b, w.Drive(ctx, w.key, db.Queue().Only(w.key)))
	}
}
