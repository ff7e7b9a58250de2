package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// A process that knows a session reads only what was written since. Deleted by
// another one, it is gone here too, for each verb that reads.
func TestDeleted_session_is_not_read_from_the_cache(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, read := range map[string]func(*process, *world) error{
		"stand":    func(p *process, w *world) error { _, err := p.View(ctx, w.key); return err },
		"messages": func(p *process, w *world) error { _, err := p.Messages(ctx, w.key); return err },
		"manifest": func(p *process, w *world) error { _, err := p.View(ctx, w.key); return err },
		"resume": func(p *process, w *world) error {
			_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`)}}))
			p := w.process()
			w.run(p, "go")
			_, err := p.View(ctx, w.key)
			require.NoError(t, err)
			require.Equal(t, session.StatusSuspended, w.session().Status)
			require.NoError(t, w.store.Delete(ctx, w.key))
			require.Equal(t, runtime.CodeSessionNotFound, codeOf(read(p, w)))
			require.Equal(t, runtime.CodeSessionNotFound, codeOf(read(p, w)), "nor the second time")
		})
	}
}
