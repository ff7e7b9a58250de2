package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

func TestVerbs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status                        session.Status
		resumes, open, hears, aborted bool
		want                          []session.Verb
	}{
		"at work":       {session.StatusRunning, false, false, false, false, []session.Verb{"fork", "send", "interrupt", "cancel", "abort", "delete"}},
		"a dead worker": {session.StatusRunning, true, false, false, false, []session.Verb{"resume", "fork", "send", "interrupt", "cancel", "abort", "delete"}},
		"approval":      {session.StatusSuspended, true, true, false, false, []session.Verb{"resume", "resume_from_checkpoint", "submit", "fork", "interrupt", "cancel", "abort", "delete"}},
		"waiting":       {session.StatusSuspended, false, true, false, false, []session.Verb{"resume_from_checkpoint", "submit", "fork", "interrupt", "cancel", "abort", "delete"}},
		"answered":      {session.StatusSuspended, true, false, true, false, []session.Verb{"resume", "resume_from_checkpoint", "fork", "send", "interrupt", "cancel", "abort", "delete"}},
		"interrupted":   {session.StatusInterrupted, true, true, false, false, []session.Verb{"resume", "resume_from_checkpoint", "submit", "fork", "cancel", "abort", "delete"}},
		"completed":     {session.StatusCompleted, false, false, false, false, []session.Verb{"start", "resume_from_checkpoint", "fork", "send", "delete"}},
		"cancelled":     {session.StatusCancelled, false, false, false, false, []session.Verb{"start", "resume_from_checkpoint", "fork", "send", "delete"}},
		"never open":    {session.StatusCompleted, false, true, true, false, []session.Verb{"start", "resume_from_checkpoint", "fork", "send", "delete"}},
		"failed":        {session.StatusFailed, false, false, false, false, []session.Verb{"resume_from_checkpoint", "retry", "fork", "delete"}},
		"aborted":       {session.StatusFailed, false, false, false, true, []session.Verb{"resume_from_checkpoint", "fork", "delete"}},
	} {
		require.Equal(t, c.want, c.status.Verbs(c.resumes, c.open, c.hears, c.aborted), name)
	}
}
