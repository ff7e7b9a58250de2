package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

func TestVerbs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status                 session.Status
		resumes, open, aborted bool
		want                   []session.Verb
	}{
		"at work":       {session.StatusRunning, false, false, false, []session.Verb{"fork", "interrupt", "cancel", "abort"}},
		"a dead worker": {session.StatusRunning, true, false, false, []session.Verb{"resume", "fork", "interrupt", "cancel", "abort"}},
		"waiting":       {session.StatusSuspended, false, true, false, []session.Verb{"resume", "resume_from_checkpoint", "submit", "fork", "interrupt", "cancel", "abort"}},
		"answered":      {session.StatusSuspended, true, false, false, []session.Verb{"resume", "resume_from_checkpoint", "fork", "interrupt", "cancel", "abort"}},
		"interrupted":   {session.StatusInterrupted, true, true, false, []session.Verb{"resume", "resume_from_checkpoint", "submit", "fork", "cancel", "abort"}},
		"completed":     {session.StatusCompleted, false, false, false, []session.Verb{"start", "resume_from_checkpoint", "fork"}},
		"cancelled":     {session.StatusCancelled, false, false, false, []session.Verb{"start", "resume_from_checkpoint", "fork"}},
		"failed":        {session.StatusFailed, false, false, false, []session.Verb{"resume_from_checkpoint", "retry", "fork"}},
		"aborted":       {session.StatusFailed, false, false, true, []session.Verb{"resume_from_checkpoint", "fork"}},
	} {
		require.Equal(t, c.want, c.status.Verbs(c.resumes, c.open, c.aborted), name)
	}
}
