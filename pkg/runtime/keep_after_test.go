package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// maxReceives is what the queue of the chain gives a message (template.yaml, Steps).
const maxReceives = 10

// A message that comes while somebody works on its session is kept, and comes back
// seldom enough that a long step makes no dead letter of it: every step a function
// may take, with a lease that is renewed all the while.
func TestKeepAfter_beside_a_long_step(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{250 * time.Second, 15 * time.Minute} {
		for _, renewed := range []time.Duration{time.Second, 7 * time.Second, 19 * time.Second} {
			t.Run(fmt.Sprintf("%v, renewed every %v", takes, renewed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("bye")}}))
				p := w.process()
				w.start(p, "go")
				began, lasts := w.clock.Now(), 20*time.Second
				w.claimFor(p, "busy", 2, lasts)
				receives := 0
				for next := began; next.Before(began.Add(takes)); {
					for renewal := w.clock.Now().Add(renewed); !renewal.After(next); renewal = renewal.Add(renewed) {
						w.clock.advance(renewed)
						_, err := w.store.Claim(t.Context(), store.ClaimParams{
							Key: w.key, Mode: store.ClaimRenew, Owner: "busy", Seq: 2, Now: w.clock.Now(), Until: w.clock.Now().Add(lasts),
						})
						require.NoError(t, err)
					}
					w.clock.advance(next.Sub(w.clock.Now()))
					receives++
					kept := w.deliver(p, 2, journal.WakeStep)
					require.Positive(t, kept.Keep)
					require.LessOrEqual(t, kept.Keep, lasts)
					next = next.Add(kept.KeepAfter(receives))
				}
				require.Less(t, receives, maxReceives, "it is a dead letter before the step ends")
			})
		}
	}
}

func TestKeepAfter_for_how_long(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {fails(busy), says("bye")}}))
	p := w.process()
	w.start(p, "go")
	w.claimFor(p, "busy", 2, 5*time.Second)
	kept := w.deliver(p, 2, journal.WakeStep)
	const most = journal.MaxAhead
	for receives, want := range map[int]time.Duration{
		0: 5 * time.Second, 1: 5 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 4: 80 * time.Second, 7: 640 * time.Second, 8: most, 10: most, 1 << 40: most,
	} {
		require.Equal(t, want, kept.KeepAfter(receives), "received %d times", receives)
	}

	w.clock.advance(6 * time.Second)
	require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep), "the retry's own message is on its way")
	tooEarly := w.deliver(p, 3, journal.WakeStep)
	require.Positive(t, tooEarly.Keep)
	require.Equal(t, tooEarly.Keep, tooEarly.KeepAfter(9), "a retry comes when it was said to, however often it was looked for")
	require.Zero(t, acknowledged.KeepAfter(9))
}
