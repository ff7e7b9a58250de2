package away_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/away"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

var start = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

// people are who may be away, at a time.
type people struct {
	*away.Away
	t     *testing.T
	now   time.Time
	store *crossed
}

// crossed is a store in which something happens before an update, or whose answer to it is lost.
type crossed struct {
	store.Store
	happens func()
	lost    bool
}

func (c *crossed) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if happens := c.happens; happens != nil {
		c.happens = nil
		happens()
	}
	out, err := c.Store.Update(ctx, key, items...)
	if c.lost && err == nil {
		c.lost = false
		return nil, &store.ConflictError{Item: &out[0]} // as to who tries again
	}
	return out, err
}

func setup(t *testing.T) *people {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	p := &people{t: t, now: start, store: &crossed{Store: db.Store()}}
	p.Away = away.New(away.Config{Store: p.store, Now: func() time.Time { return p.now }})
	return p
}

// params are those of "ann bob 1 3": Bob is there for Ann from the first hour to the third.
func params(text string) away.Params {
	p := away.Params{Tenant: "acme", From: "test"}
	var begins, until int
	_, _ = fmt.Sscan(text, &p.Who, &p.To, &begins, &until)
	p.Begins, p.Until = start.Add(time.Duration(begins)*time.Hour), start.Add(time.Duration(until)*time.Hour)
	return p
}

func (p *people) set(text string) error {
	_, err := p.Set(p.t.Context(), params(text))
	return err
}

func (p *people) read(tenant string) away.Record {
	r, err := p.Read(p.t.Context(), tenant)
	require.NoError(p.t, err)
	return r
}

func codeOf(err error) codes.Code {
	if refused, ok := err.(*refusal.Error); ok { //nolint:errorlint // as it is returned
		return refused.Code
	}
	if err != nil {
		return codes.Internal
	}
	return ""
}

// TestSet_cycle: people never stand in for each other at the same time, whoever says it last.
func TestSet_cycle(t *testing.T) {
	t.Parallel()
	long := []string{}
	for i := range 40 {
		long = append(long, fmt.Sprintf("p%d p%d 0 9", i, i+1))
	}
	for name, test := range map[string]struct {
		set  []string
		want codes.Code
	}{
		"each other":             {[]string{"ann bob 0 9", "bob ann 0 9"}, codes.StandInCycle},
		"three":                  {[]string{"ann bob 0 9", "bob cyd 0 9", "cyd ann 0 9"}, codes.StandInCycle},
		"three, the middle last": {[]string{"ann bob 0 9", "cyd ann 0 9", "bob cyd 0 9"}, codes.StandInCycle},
		"a long one":             {append(long, "p40 p0 0 9"), codes.StandInCycle},
		"for an hour":            {[]string{"ann bob 0 5", "bob ann 4 9"}, codes.StandInCycle},
		"one after the other":    {[]string{"ann bob 0 5", "bob ann 5 9"}, ""},
		"never all three":        {[]string{"ann bob 0 5", "bob cyd 3 9", "cyd ann 5 9"}, ""},
		"all three for an hour":  {[]string{"ann bob 0 6", "bob cyd 3 9", "cyd ann 5 9"}, codes.StandInCycle},
		"two for one":            {[]string{"ann bob 0 9", "cyd bob 0 9"}, ""},
		"a chain":                {[]string{"bob cyd 0 9", "ann bob 0 9"}, ""},
		"in the place of before": {[]string{"ann bob 0 9", "ann cyd 0 9", "bob ann 0 9"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			last := len(test.set) - 1
			for _, text := range test.set[:last] {
				require.NoError(t, p.set(text))
			}
			before := p.read("acme")
			require.Equal(t, test.want, codeOf(p.set(test.set[last])))
			if test.want != "" {
				require.Equal(t, before, p.read("acme"))
			}
		})
	}
}

// TestSet_race: of two who name each other at the same moment one is refused.
func TestSet_race(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.store.happens = func() { require.NoError(t, p.set("bob ann 0 9")) }
	require.Equal(t, codes.StandInCycle, codeOf(p.set("ann bob 0 9")))
	require.Len(t, p.read("acme").StandIns, 1)

	p = setup(t)
	var told sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			who := fmt.Sprintf("p%d", i)
			_, err := p.Set(context.Background(), params(fmt.Sprintf("%s p%d 0 9", who, (i+1)%8)))
			told.Store(who, codeOf(err))
		})
	}
	wg.Wait()
	refused := 0
	for i := range 8 {
		code, _ := told.Load(fmt.Sprintf("p%d", i))
		if code != codes.Code("") {
			require.Equal(t, codes.StandInCycle, code)
			refused++
		}
	}
	require.Equal(t, 1, refused, "all eight would be a cycle")
	require.Len(t, p.read("acme").StandIns, 7)
}

func TestSet_refuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*away.Params)
		want   codes.Code
	}{
		"themselves":          {func(p *away.Params) { p.To = " ann " }, codes.InvalidInput},
		"nobody":              {func(p *away.Params) { p.To = " " }, codes.InvalidInput},
		"two lines":           {func(p *away.Params) { p.To = "bob\ncyd" }, codes.InvalidInput},
		"a long name":         {func(p *away.Params) { p.To = strings.Repeat("ä", 257) }, codes.InvalidInput},
		"a long name of whom": {func(p *away.Params) { p.Who = strings.Repeat("ä", 257) }, codes.InvalidInput},
		"no text":             {func(p *away.Params) { p.To = "\xff" }, codes.InvalidInput},
		"for ever":            {func(p *away.Params) { p.Until = time.Time{} }, codes.InvalidInput},
		"until now":           {func(p *away.Params) { p.Begins, p.Until = time.Time{}, start }, codes.InvalidInput},
		"in the past":         {func(p *away.Params) { p.Begins, p.Until = start.Add(-2*time.Hour), start.Add(-time.Hour) }, codes.InvalidInput},
		"over as it begins":   {func(p *away.Params) { p.Until = p.Begins }, codes.InvalidInput},
		"more than a year":    {func(p *away.Params) { p.Until = start.Add(366*24*time.Hour + time.Second) }, codes.InvalidInput},
		"a long reason":       {func(p *away.Params) { p.Reason = strings.Repeat("x", 1025) }, codes.InputTooLarge},
		"without a name":      {func(p *away.Params) { p.Who = "" }, codes.NotAllowed},
		"not verified":        {func(p *away.Params) { p.Unverified = true }, codes.SignInRequired},
		"by a link":           {func(p *away.Params) { p.ByLink = true }, codes.SignInRequired},
		"a data file":         {func(p *away.Params) { p.OneUser = true }, codes.NotAllowed},
		"just a year":         {func(p *away.Params) { p.Until = start.Add(366 * 24 * time.Hour) }, ""},
		"just as long a name": {func(p *away.Params) { p.To = strings.Repeat("ä", 256) }, ""},
	} {
		p, asked := setup(t), params("ann bob 1 3")
		test.change(&asked)
		_, err := p.Set(t.Context(), asked)
		require.Equal(t, test.want, codeOf(err), name)
		if test.want == "" {
			continue
		}
		require.Empty(t, p.read("acme").StandIns, name)
		if test.want == codes.InvalidInput || test.want == codes.InputTooLarge {
			continue
		}
		_, err = p.End(t.Context(), asked)
		require.Equal(t, test.want, codeOf(err), name)
	}
	_, err := setup(t).Set(t.Context(), away.Params{Tenant: "*", Who: "ann", To: "bob", Until: start.Add(time.Hour)})
	require.ErrorIs(t, err, session.ErrInvalidID)
}

// TestSet_twice: the same again changes nothing, another replaces it.
func TestSet_twice(t *testing.T) {
	t.Parallel()
	p := setup(t)
	asked := params("ann bob 0 9")
	asked.Begins = time.Time{}
	first, err := p.Set(t.Context(), asked)
	require.NoError(t, err)
	require.False(t, first.Already)
	p.now = p.now.Add(time.Minute)
	again, err := p.Set(t.Context(), asked)
	require.NoError(t, err)
	require.True(t, again.Already)
	require.Equal(t, first.StandIn, again.StandIn)
	require.Len(t, p.read("acme").Changes, 1)
	p.store.lost = true
	other, err := p.Set(t.Context(), params("ann cyd 0 9"))
	require.NoError(t, err)
	require.False(t, other.Already, "an earlier try of the same call has set it")
	r := p.read("acme")
	require.Len(t, r.StandIns, 1)
	require.Equal(t, "cyd", r.StandIns[0].StandIn)
	require.Len(t, r.Changes, 2)
	p.store.lost = true
	ended, err := p.End(t.Context(), params("ann cyd 0 9"))
	require.NoError(t, err)
	require.Equal(t, "cyd", ended.StandIn.StandIn)
	ended, err = p.End(t.Context(), params("ann cyd 0 9"))
	require.NoError(t, err)
	require.Nil(t, ended.StandIn)
	changes := p.read("acme").Changes
	require.Len(t, changes, 3)
	require.Equal(t, session.StandInEnded, changes[2].Kind)
}

// TestSet_bounded: what is over is left out at the next write, so that there is room again; of the changes the
// newest are kept.
func TestSet_bounded(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for i := range 100 {
		require.NoError(t, p.set(fmt.Sprintf("p%d zoe 0 %d", i, 2+i)))
	}
	require.Equal(t, codes.TooManyStandIns, codeOf(p.set("ann bob 0 9")))
	require.NoError(t, p.set("p7 bob 0 9"), "who is there already")
	p.now = p.now.Add(2 * time.Hour)
	require.Len(t, p.read("acme").StandIns, 99)
	require.NoError(t, p.set("ann bob 0 9"))
	r := p.read("acme")
	require.Len(t, r.StandIns, 100)
	require.Len(t, r.Changes, 100)
	require.Equal(t, []string{"p2", "ann"}, []string{r.Changes[0].Person, r.Changes[99].Person})
	for item, err := range p.store.Items(t.Context(), session.Key{Tenant: "acme"}, store.KindTenantRecord, "away") {
		require.NoError(t, err)
		require.NotContains(t, string(item.TenantRecord.Value), `"p0"`)
	}
}

// TestTenants: what one says is nothing to another.
func TestTenants(t *testing.T) {
	t.Parallel()
	p := setup(t)
	require.NoError(t, p.set("ann bob 0 9"))
	require.Empty(t, p.read("globex"))
	other := params("bob ann 0 9")
	other.Tenant = "globex"
	_, err := p.Set(t.Context(), other)
	require.NoError(t, err)
	require.Len(t, p.read("acme").StandIns, 1)
	in, err := p.InForce(t.Context(), "globex")
	require.NoError(t, err)
	require.Equal(t, "ann", in[0].StandIn)
	p.now = p.now.Add(9 * time.Hour)
	in, err = p.InForce(t.Context(), "globex")
	require.NoError(t, err)
	require.Empty(t, in)
}

// TestUnreadable: what cannot be understood is nobody's yes, and is not written over.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	p := setup(t)
	_, err := p.store.Update(t.Context(), session.Key{Tenant: "acme"}, store.TenantItem(journal.TenantRecord{Name: "away", Value: []byte(`"x"`)}, 0))
	require.NoError(t, err)
	in, err := p.InForce(t.Context(), "acme")
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.Empty(t, in)
	require.ErrorIs(t, p.set("ann bob 0 9"), store.ErrCorrupt)
}
