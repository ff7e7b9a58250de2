package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// take returns a claim of the fixtures' first session.
func take(owner string, seq int64, now, until int) store.ClaimParams {
	return store.ClaimParams{
		Key: session.Key{Tenant: "acme", ID: "s-1"}, Mode: store.ClaimTake, Owner: owner, Seq: seq, Now: at(now), Until: at(until),
	}
}

func (p mode) of(owner string, seq int64, now, until int) store.ClaimParams {
	c := take(owner, seq, now, until)
	c.Mode = store.ClaimMode(p)
	return c
}

type mode store.ClaimMode

const (
	renew   = mode(store.ClaimRenew)
	move    = mode(store.ClaimMove)
	release = mode(store.ClaimRelease)
)

func (f *fixture) claim(p store.ClaimParams) store.Item {
	f.Helper()
	item, err := f.store.Claim(f.Context(), p)
	require.NoError(f, err)
	require.Equal(f, store.KindHead, item.Kind)
	return item
}

// refused requires that a claim is refused with HEAD as it is.
func (f *fixture) refused(p store.ClaimParams) {
	f.Helper()
	_, err := f.store.Claim(f.Context(), p)
	require.ErrorIs(f, err, store.ErrLeaseHeld)
	var held *store.LeaseError
	require.ErrorAs(f, err, &held)
	require.Equal(f, f.head(), held.Head)
}

// lease is one that was asked for to last 20 seconds.
func lease(owner string, seq, n int64, until time.Time) journal.Lease {
	return journal.Lease{Owner: owner, Seq: seq, N: n, Until: until, For: 20 * time.Second}
}

var claimTests = []test{
	{"a session that does not exist is not found", func(f *fixture) {
		_, err := f.store.Claim(f.Context(), take("w", 1, 0, 20))
		require.ErrorIs(f, err, store.ErrNotFound)
	}},
	{"a deleted session is not found", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		for _, p := range []store.ClaimParams{take("w", 2, 0, 20), take("w", 900, 0, 20), renew.of("w", 2, 0, 20), move.of("w", 3, 0, 20), release.of("w", 2, 0, 20)} {
			_, err := f.store.Claim(f.Context(), p)
			require.ErrorIs(f, err, store.ErrNotFound, p.Mode)
		}
		require.Zero(f, f.head().Head.Lease)
	}},
	{"it returns HEAD as it is afterwards with its rev unchanged", func(f *fixture) {
		f.start()
		h := head(f.key)
		h.Signal = &journal.Signal{ID: "sig", Kind: journal.SignalInterrupt, At: at(1)}
		h.MailCount = 7
		f.update(store.HeadItem(h, 1))
		got := f.claim(take("w", 2, 0, 20))
		require.EqualValues(f, 2, got.Rev)
		h.Lease = lease("w", 2, 1, at(20))
		require.Equal(f, store.HeadItem(h, 2), got)
		require.Equal(f, got, f.head())
		// So an update that was read before the claim still succeeds.
		f.update(store.HeadItem(h, 2))
	}},
	{"take is granted for a higher seq under any holder of the lease and n is 1", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 20))
		f.claim(take("w1", 2, 30, 50))
		got := f.claim(take("w2", 3, 1, 21))
		require.Equal(f, lease("w2", 3, 1, at(21)), got.Head.Lease)
	}},
	{"take is refused for a lower seq to every owner", func(f *fixture) {
		f.start()
		f.claim(take("w", 5, 0, 20))
		f.refused(take("w", 4, 1, 21))
		f.refused(take("other", 4, 100, 120))
	}},
	{"take of the same seq is refused while the lease lasts", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 20))
		f.refused(take("w2", 2, 19, 39))
	}},
	{"take of the same seq is granted when its time has passed and n is one more", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 20))
		got := f.claim(take("w2", 2, 20, 40))
		want := lease("w2", 2, 2, at(40))
		want.Died = 1
		require.Equal(f, want, got.Head.Lease)
		got = f.claim(take("w3", 2, 41, 60))
		require.EqualValues(f, 3, got.Head.Lease.N)
		require.EqualValues(f, 2, got.Head.Lease.Died)
	}},
	{"take of the same seq is granted when its time is further ahead than it was asked for and clocks differ", func(f *fixture) {
		f.start()
		f.claim(take("ahead", 2, 3600, 3620))
		got := f.claim(take("w2", 2, 0, 20))
		want := lease("w2", 2, 2, at(20))
		want.Died = 1
		require.Equal(f, want, got.Head.Lease)
		f.claim(renew.of("w2", 2, 0, 925)) // a tool of 15 minutes
		f.refused(take("w3", 2, 0, 20))
		f.refused(take("w3", 2, -59, -39)) // its clock is a minute slow
		require.EqualValues(f, 3, f.claim(take("w4", 2, -3600, -3580)).Head.Lease.N, "an hour slow")
	}},
	{"take of the same seq by its owner is granted and n unchanged", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 20))
		got := f.claim(take("w1", 2, 10, 30))
		require.Equal(f, lease("w1", 2, 1, at(30)), got.Head.Lease)
		got = f.claim(take("w1", 2, 90, 110))
		require.EqualValues(f, 1, got.Head.Lease.N, "had it already, though it had lapsed")
	}},
	{"owners that differ in the last letter are different owners", func(f *fixture) {
		f.start()
		f.claim(take("p/1", 2, 0, 20))
		f.refused(take("p/2", 2, 1, 21))
		f.refused(take("p", 2, 1, 21))
	}},
	{"renew extends the lease of its owner", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		got := f.claim(renew.of("w", 2, 5, 25))
		require.Equal(f, lease("w", 2, 1, at(25)), got.Head.Lease)
	}},
	{"renew is granted after the time has passed if no other owner took it", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		require.Equal(f, lease("w", 2, 1, at(60)), f.claim(renew.of("w", 2, 40, 60)).Head.Lease)
	}},
	{"renew that arrives late does not end the lease sooner", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		long := lease("w", 2, 1, at(95))
		long.For = 90 * time.Second
		require.Equal(f, long, f.claim(renew.of("w", 2, 5, 95)).Head.Lease)
		require.Equal(f, long, f.claim(renew.of("w", 2, 4, 24)).Head.Lease, "asked for before, for less")
		require.Equal(f, at(95), f.claim(renew.of("w", 2, 80, 95)).Head.Lease.Until)
		require.Equal(f, at(100), f.claim(renew.of("w", 2, 80, 100)).Head.Lease.Until)
		f.refused(take("other", 2, 99, 119))
		got := f.claim(release.of("w", 2, 81, 0)).Head.Lease
		require.True(f, got.Lapsed(at(81)), "release ends it all the same")
		f.claim(take("other", 2, 82, 102))
	}},
	{"take and move that arrive again do not end the lease sooner", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		f.claim(renew.of("w", 2, 1, 95))
		require.Equal(f, at(95), f.claim(take("w", 2, 0, 20)).Head.Lease.Until)
		require.Equal(f, at(23), f.claim(move.of("w", 3, 3, 23)).Head.Lease.Until, "of another entry it is a new one")
		f.claim(renew.of("w", 3, 4, 95))
		require.Equal(f, at(95), f.claim(move.of("w", 3, 3, 23)).Head.Lease.Until)
	}},
	{"renew begins anew where the end is further ahead than it can be", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 86400, 86420)) // its clock was a day ahead
		require.Equal(f, lease("w", 2, 1, at(25)), f.claim(renew.of("w", 2, 5, 25)).Head.Lease)
		f.claim(renew.of("w", 2, 35, 55))
		require.Equal(f, lease("w", 2, 1, at(55)), f.claim(renew.of("w", 2, 5, 25)).Head.Lease, "no further than two right clocks differ")
	}},
	{"renew is refused to anybody else and for another seq", func(f *fixture) {
		f.start()
		f.refused(renew.of("w", 2, 0, 20))
		f.claim(take("w", 2, 0, 20))
		f.refused(renew.of("other", 2, 5, 25))
		f.refused(renew.of("other", 2, 50, 75))
		f.refused(renew.of("w", 3, 5, 25))
		f.refused(renew.of("w", 1, 5, 25))
	}},
	{"renew is refused when another owner has taken the lease", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 20))
		f.claim(take("w2", 2, 20, 40))
		f.refused(renew.of("w1", 2, 21, 41))
	}},
	{"move takes the lease of its owner to another seq and n is 1", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 1))
		f.claim(take("w2", 2, 2, 22))
		got := f.claim(move.of("w2", 3, 3, 23))
		require.Equal(f, lease("w2", 3, 1, at(23)), got.Head.Lease)
	}},
	{"move to the seq it has extends the lease and changes no count", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 20))
		f.claim(take("w2", 2, 30, 50))
		want := lease("w2", 2, 2, at(55))
		want.Died = 1
		require.Equal(f, want, f.claim(move.of("w2", 2, 35, 55)).Head.Lease)
	}},
	{"move is refused to anybody else and never goes back", func(f *fixture) {
		f.start()
		f.refused(move.of("w", 2, 0, 20))
		f.claim(take("w", 3, 0, 20))
		f.refused(move.of("other", 4, 1, 21))
		f.refused(move.of("other", 4, 100, 121))
		f.refused(move.of("w", 2, 1, 21))
	}},
	{"release ends the lease and the next owner has n one more", func(f *fixture) {
		f.start()
		f.claim(take("w1", 2, 0, 20))
		got := f.claim(release.of("w1", 2, 1, 0))
		require.Equal(f, journal.Lease{Seq: 2, N: 1}, got.Head.Lease, "the seq never goes back")
		require.Equal(f, got, f.head())
		require.False(f, got.Head.Lease.Live(at(1), 1, false))
		got = f.claim(take("w2", 2, 1, 21))
		require.Equal(f, lease("w2", 2, 2, at(21)), got.Head.Lease)
	}},
	{"a claim that was given back did not die", func(f *fixture) {
		f.start()
		for i := range 7 {
			f.claim(take("w1", 2, i, 20+i))
			f.claim(release.of("w1", 2, i, i))
		}
		got := f.claim(take("w2", 2, 10, 30))
		require.EqualValues(f, 8, got.Head.Lease.N)
		require.Zero(f, got.Head.Lease.Died)
		got = f.claim(take("w3", 2, 30, 50)) // this one did
		require.EqualValues(f, 1, got.Head.Lease.Died)
		got = f.claim(renew.of("w3", 2, 35, 55))
		require.EqualValues(f, 1, got.Head.Lease.Died)
		require.EqualValues(f, 1, f.claim(take("w3", 2, 36, 56)).Head.Lease.Died, "had it already")
		f.claim(release.of("w3", 2, 40, 40))
		require.EqualValues(f, 1, f.claim(take("w4", 2, 41, 61)).Head.Lease.Died)
		require.Zero(f, f.claim(move.of("w4", 3, 42, 62)).Head.Lease.Died, "of another entry")
		require.Zero(f, f.claim(take("w5", 4, 43, 63)).Head.Lease.Died)
	}},
	{"release is refused to anybody else and for another seq", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		f.refused(release.of("other", 2, 1, 0))
		f.refused(release.of("w", 3, 1, 0))
		require.Equal(f, lease("w", 2, 1, at(20)), f.head().Head.Lease)
	}},
	{"a released lease cannot be renewed", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		f.claim(release.of("w", 2, 1, 0))
		f.refused(renew.of("w", 2, 2, 22))
	}},
	{"of 64 claimants of one seq one is granted", func(f *fixture) {
		f.start()
		errs := race(64, func(i int) error {
			_, err := f.store.Claim(f.Context(), take(fmt.Sprintf("w%d", i), 2, 0, 20))
			return err
		})
		require.Equal(f, 1, successes(errs))
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(f, err, store.ErrLeaseHeld)
			}
		}
		require.EqualValues(f, 1, f.head().Head.Lease.N)
	}},
	{"a lease that lapsed is granted to one of 64 claimants", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		errs := race(64, func(i int) error {
			_, err := f.store.Claim(f.Context(), take(fmt.Sprintf("w%d", i), 2, 30, 50))
			return err
		})
		require.Equal(f, 1, successes(errs))
		require.EqualValues(f, 2, f.head().Head.Lease.N)
	}},
	{"claims and updates of HEAD at once lose neither", func(f *fixture) {
		f.start()
		errs := race(32, func(i int) error {
			if i%2 == 0 {
				_, err := f.store.Claim(f.Context(), take("w", 2+int64(i), i, 20+i))
				return err
			}
			for {
				h := f.head()
				h.Head.MailCount++
				if _, err := f.store.Update(f.Context(), f.key, h); err == nil {
					return nil
				}
			}
		})
		for i, err := range errs {
			if err != nil {
				require.ErrorIs(f, err, store.ErrLeaseHeld, i)
			}
		}
		require.EqualValues(f, 16, f.head().Head.MailCount)
		require.EqualValues(f, 32, f.head().Head.Lease.Seq)
	}},
}

var leaseOwnerTests = []test{
	{"a commit for the owner of the lease is refused to any other", func(f *fixture) {
		f.start()
		forW := func(seq int64) error {
			h := f.head()
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(seq), Items: []store.Item{store.HeadItem(*h.Head, h.Rev)}, LeaseOwner: "w"})
			return err
		}
		require.Equal(f, f.head(), *conflict(f, forW(2)).Item, "nobody has it")
		f.claim(take("other", 2, 0, 20))
		require.Equal(f, f.head(), *conflict(f, forW(2)).Item)
		f.claim(take("w", 2, 30, 50))
		require.NoError(f, forW(2))
		require.Equal(f, "w", f.head().Head.Lease.Owner)
		f.claim(release.of("w", 2, 40, 40))
		require.Equal(f, f.head(), *conflict(f, forW(3)).Item, "it was given back")
		require.Len(f, f.entries(1), 1)
	}},
	{"and needs HEAD among its items", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), LeaseOwner: "w"})
		require.Error(f, err)
		require.NotErrorIs(f, err, store.ErrConflict)
		require.Empty(f, f.entries(1))
	}},
}

// commitWith commits an entry with a claim along, and returns HEAD if it was granted.
func (f *fixture) commitWith(seq int64, claim store.ClaimParams) *store.Item {
	f.Helper()
	out, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(seq), Claim: &claim})
	require.NoError(f, err)
	return out.Head
}

var commitClaimTests = []test{
	{"a claim along with it is granted with the entry, or left to the caller", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		granted := f.commitWith(2, move.of("w", 3, 1, 21))
		if granted == nil {
			require.Equal(f, lease("w", 2, 1, at(20)), f.head().Head.Lease)
			f.claim(move.of("w", 3, 1, 21))
		} else {
			require.Equal(f, f.head(), *granted)
		}
		require.Equal(f, lease("w", 3, 1, at(21)), f.head().Head.Lease)
	}},
	{"a claim along with it that is refused does not undo it", func(f *fixture) {
		f.start()
		f.claim(take("other", 2, 0, 20))
		require.Nil(f, f.commitWith(2, move.of("w", 3, 1, 21)))
		require.Len(f, f.entries(1), 1)
		require.Equal(f, lease("other", 2, 1, at(20)), f.head().Head.Lease)
	}},
	{"a commit that is refused makes no claim", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		f.commit(2)
		claim := move.of("w", 3, 1, 21)
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), Claim: &claim})
		require.ErrorIs(f, err, store.ErrConflict)
		require.Equal(f, lease("w", 2, 1, at(20)), f.head().Head.Lease)
	}},
}
