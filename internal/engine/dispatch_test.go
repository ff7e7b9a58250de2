package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// The table of docs/design/chain.md, row by row. The session stands at entry 5.
func TestDispatch(t *testing.T) {
	t.Parallel()
	const step, resume = journal.WakeStep, journal.WakeResume
	running, suspended, interrupted := session.StatusRunning, session.StatusSuspended, session.StatusInterrupted
	now := t0.Add(time.Minute)
	lease := func(seq int64, left time.Duration) journal.Lease {
		return journal.Lease{Owner: "other", Seq: seq, N: 1, Until: now.Add(left)}
	}
	none := journal.Lease{}
	type newest struct {
		keepsLease bool
		For        int64
		age        time.Duration
		until      time.Duration
		// message it was written for, where its name is known.
		message string
	}
	old := newest{For: 5, age: time.Minute}
	for name, c := range map[string]struct {
		kind      journal.WakeKind
		k         int64
		status    session.Status
		claimed   bool
		lease     journal.Lease
		open      int
		newest    newest
		signalled bool
		message   string
		want      engine.Action
	}{
		"ended_completed":             {kind: step, k: 6, status: session.StatusCompleted, claimed: true, want: engine.Acknowledge},
		"ended_failed":                {kind: resume, k: 6, status: session.StatusFailed, claimed: true, want: engine.Acknowledge},
		"ended_cancelled_old_message": {kind: step, k: 5, status: session.StatusCancelled, newest: old, want: engine.Acknowledge},
		"step_beyond_the_next":        {kind: step, k: 7, status: running, claimed: true, want: engine.Acknowledge},
		"resume_beyond_the_next":      {kind: resume, k: 7, status: suspended, claimed: true, want: engine.Acknowledge},

		"step_suspended":       {kind: step, k: 6, status: suspended, claimed: true, want: engine.Acknowledge},
		"step_suspended_old":   {kind: step, k: 5, status: suspended, lease: lease(6, time.Second), want: engine.Acknowledge},
		"step_interrupted":     {kind: step, k: 6, status: interrupted, claimed: true, want: engine.Acknowledge},
		"step_interrupted_old": {kind: step, k: 5, status: interrupted, want: engine.Acknowledge},

		"resume_suspended_nothing_open_claimed":       {kind: resume, k: 6, status: suspended, claimed: true, want: engine.Resume},
		"resume_suspended_nothing_open_not_claimed":   {kind: resume, k: 6, status: suspended, want: engine.Resume},
		"resume_suspended_nothing_open_dead_lease":    {kind: resume, k: 6, status: suspended, lease: lease(6, -1), want: engine.Resume},
		"resume_suspended_nothing_open_closed_lease":  {kind: resume, k: 6, status: suspended, lease: lease(5, time.Second), want: engine.Resume},
		"resume_suspended_nothing_open_leased_others": {kind: resume, k: 6, status: suspended, lease: lease(6, time.Second), want: engine.Keep},
		"resume_interrupted":                          {kind: resume, k: 6, status: interrupted, claimed: true, want: engine.Acknowledge},
		"resume_interrupted_counts_no_waits":          {kind: resume, k: 6, status: interrupted, claimed: true, open: 2, want: engine.Acknowledge},
		"resume_interrupted_leased_by_others":         {kind: resume, k: 6, status: interrupted, lease: lease(6, time.Second), want: engine.Acknowledge},
		"resume_suspended_one_open":                   {kind: resume, k: 6, status: suspended, claimed: true, open: 1, want: engine.Acknowledge},
		"resume_suspended_one_open_lease_live":        {kind: resume, k: 6, status: suspended, lease: lease(6, time.Second), open: 1, want: engine.Acknowledge},
		"resume_suspended_since_then":                 {kind: resume, k: 5, status: suspended, newest: old, want: engine.Acknowledge},
		"resume_interrupted_since_then":               {kind: resume, k: 5, status: interrupted, newest: old, want: engine.Acknowledge},

		"old_running_lease_live":              {kind: step, k: 5, status: running, lease: lease(6, time.Second), newest: old, want: engine.Keep},
		"old_running_lease_kept_by_goes_on":   {kind: step, k: 5, status: running, lease: lease(5, time.Second), newest: newest{keepsLease: true, For: 5, age: time.Minute}, want: engine.Keep},
		"old_running_lease_live_of_resume":    {kind: resume, k: 5, status: running, lease: lease(5, time.Second), newest: newest{keepsLease: true, For: 5}, want: engine.Keep},
		"old_written_for_another":             {kind: step, k: 4, status: running, newest: old, want: engine.Acknowledge},
		"old_written_by_a_verb":               {kind: step, k: 5, status: running, newest: newest{age: time.Minute}, want: engine.Acknowledge},
		"old_written_for_this_young":          {kind: step, k: 5, status: running, newest: newest{For: 5, age: time.Second}, want: engine.ComeBack},
		"old_written_for_this_not_young":      {kind: step, k: 5, status: running, newest: newest{For: 5, age: 2 * time.Second}, want: engine.SendNext},
		"old_several_entries_written_for_it":  {kind: step, k: 3, status: running, newest: newest{For: 3, age: time.Minute}, want: engine.SendNext},
		"old_resume_died_before_sending":      {kind: resume, k: 4, status: running, newest: newest{For: 4, age: time.Minute}, want: engine.SendNext},
		"old_written_for_this_one_by_name":    {kind: step, k: 5, status: running, newest: newest{For: 5, age: time.Minute, message: "a"}, message: "a", want: engine.SendNext},
		"old_written_for_a_copy":              {kind: step, k: 5, status: running, newest: newest{For: 5, age: time.Minute, message: "a"}, message: "b", want: engine.Acknowledge},
		"old_young_and_written_for_a_copy":    {kind: step, k: 5, status: running, newest: newest{For: 5, age: time.Second, message: "a"}, message: "b", want: engine.Acknowledge},
		"old_for_a_copy_and_leased":           {kind: step, k: 5, status: running, lease: lease(6, time.Second), newest: newest{For: 5, age: time.Minute, message: "a"}, message: "b", want: engine.Keep},
		"old_written_before_there_were_names": {kind: step, k: 5, status: running, newest: old, message: "b", want: engine.SendNext},
		"old_of_a_queue_without_names":        {kind: step, k: 5, status: running, newest: newest{For: 5, age: time.Minute, message: "a"}, want: engine.SendNext},
		"old_for_another_entry_by_one_name":   {kind: step, k: 4, status: running, newest: newest{For: 5, age: time.Minute, message: "a"}, message: "a", want: engine.Acknowledge},
		"old_lease_closed_by_its_entry":       {kind: step, k: 5, status: running, lease: lease(5, time.Second), newest: old, want: engine.SendNext},
		"old_lease_dead_though_it_goes_on":    {kind: step, k: 5, status: running, lease: lease(5, -1), newest: newest{keepsLease: true, For: 5, age: time.Minute}, want: engine.SendNext},
		"old_and_claimed":                     {kind: step, k: 5, status: running, claimed: true, lease: lease(5, time.Second), newest: newest{keepsLease: true, For: 5, age: time.Minute}, want: engine.SendNext},

		"next_claimed":                      {kind: step, k: 6, status: running, claimed: true, newest: old, want: engine.Work},
		"next_no_lease":                     {kind: step, k: 6, status: running, lease: none, newest: old, want: engine.Work},
		"next_lease_dead":                   {kind: step, k: 6, status: running, lease: lease(6, 0), newest: old, want: engine.Work},
		"next_lease_closed":                 {kind: step, k: 6, status: running, lease: lease(5, time.Second), newest: old, want: engine.Work},
		"next_by_resume_of_a_running_one":   {kind: resume, k: 6, status: running, claimed: true, newest: old, want: engine.Work},
		"next_running_counts_no_waits":      {kind: resume, k: 6, status: running, claimed: true, open: 1, newest: old, want: engine.Work},
		"next_leased_by_others":             {kind: step, k: 6, status: running, lease: lease(6, time.Second), newest: old, want: engine.Keep},
		"next_others_go_on":                 {kind: step, k: 6, status: running, lease: lease(5, time.Second), newest: newest{keepsLease: true}, want: engine.Keep},
		"next_put_off":                      {kind: step, k: 6, status: running, claimed: true, newest: newest{until: time.Second}, want: engine.TooEarly},
		"next_put_off_and_leased_by_others": {kind: step, k: 6, status: running, lease: lease(6, time.Second), newest: newest{until: time.Second}, want: engine.Keep},
		"next_put_off_signalled":            {kind: step, k: 6, status: running, claimed: true, signalled: true, newest: newest{until: time.Hour}, want: engine.Work},
		"next_put_off_signalled_and_leased": {kind: step, k: 6, status: running, signalled: true, lease: lease(6, time.Second), newest: newest{until: time.Hour}, want: engine.Keep},
		"next_put_off_for_days":             {kind: step, k: 6, status: running, claimed: true, newest: newest{until: 48 * time.Hour}, want: engine.TooEarly},
		"next_put_off_by_a_clock_ahead":     {kind: step, k: 6, status: running, claimed: true, newest: newest{age: -time.Hour, until: time.Hour + 5*time.Second}, want: engine.Work},
		"next_put_off_by_a_clock_a_bit_off": {kind: step, k: 6, status: running, claimed: true, newest: newest{age: -time.Second, until: 6 * time.Second}, want: engine.TooEarly},
		"next_leased_by_a_clock_ahead":      {kind: step, k: 6, status: running, lease: lease(6, time.Hour), newest: old, want: engine.Work},
		"old_leased_by_a_clock_ahead":       {kind: step, k: 5, status: running, lease: lease(6, time.Hour), newest: old, want: engine.SendNext},
		"old_young_by_a_clock_ahead":        {kind: step, k: 5, status: running, newest: newest{For: 5, age: -time.Hour}, want: engine.SendNext},
		"old_young_by_a_clock_a_bit_ahead":  {kind: step, k: 5, status: running, newest: newest{For: 5, age: -time.Second}, want: engine.ComeBack},
		"next_put_off_until_now":            {kind: step, k: 6, status: running, claimed: true, newest: newest{until: -1}, want: engine.Work},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &session.Session{Key: key, Version: 5, Status: c.status}
			s.Newest = session.Newest{At: now.Add(-c.newest.age), KeepsLease: c.newest.keepsLease, Attempt: session.Attempt{For: c.newest.For, Message: c.newest.message}}
			if c.newest.until != 0 {
				until := now.Add(c.newest.until)
				s.Newest.Until = &until
			}
			wake := journal.NewWake(key, c.k, c.kind)
			wake.Message = c.message
			require.Equal(t, c.want, engine.Dispatch(engine.Facts{
				Now: now, Wake: wake, Session: s, Claimed: c.claimed, Lease: c.lease, WaitsOpen: c.open, Signalled: c.signalled, Grace: 2 * time.Second,
			}))
		})
	}
}

func TestDispatch_no_such_session(t *testing.T) {
	t.Parallel()
	for _, s := range []*session.Session{nil, {Key: key}} {
		for _, kind := range []journal.WakeKind{journal.WakeStep, journal.WakeResume} {
			require.Equal(t, engine.Acknowledge, engine.Dispatch(engine.Facts{Wake: journal.NewWake(key, 1, kind), Session: s, Claimed: true}))
		}
	}
}

// A young entry whose writer is dead needs no grace: nobody is still sending for it.
func TestDispatch_a_dead_writer_s_message_goes_on_at_once(t *testing.T) {
	t.Parallel()
	now := t0.Add(time.Minute)
	s := &session.Session{Key: key, Version: 5, Status: session.StatusRunning}
	s.Newest = session.Newest{At: now.Add(-time.Second), Attempt: session.Attempt{For: 5}}
	require.Equal(t, engine.SendNext, engine.Dispatch(engine.Facts{Now: now, Wake: journal.NewWake(key, 5, journal.WakeStep), Session: s, Lease: journal.Lease{Owner: "other", Seq: 5, N: 1}, Grace: 2 * time.Second}))
}
