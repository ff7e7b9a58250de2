package report

import (
	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Deleted says that a session is gone, and keeps the pause file true.
func Deleted(s *screen.Screen, where *place.Place, d client.Deleted) {
	Ended(s, where, d.SessionID)
	if s.Form == screen.FormJSON {
		s.JSON(d)
		return
	}
	s.Say("Session %s is deleted. Its status was %s.", d.SessionID, d.Status)
	if d.Status == session.StatusRunning {
		s.Talk("A step that was under way writes nothing more into it; what its tools have done is not undone.")
	}
}
