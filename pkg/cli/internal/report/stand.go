package report

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
)

// Stand returns the session's manifest, hint included, also after an interrupt.
func Stand(ctx context.Context, where *place.Place, e *place.Connection, id string) (Manifest, error) {
	s, err := e.Session(context.WithoutCancel(ctx), id, 0)
	if err != nil {
		return Manifest{}, err
	}
	m := NewManifest(s)
	m.ResumeHint = ResumeHint(where, m)
	if agents := e.Agents(); agents != nil && len(Pending(m)) == 0 && !slices.Contains(agents, m.Agent) {
		m.ResumeHint = "" // this program cannot go on with it
	}
	return m, nil
}

// Close gives back what a command has opened; work that is done stays done.
func Close(show *screen.Screen, where *place.Place, e interface{ Close() error }) {
	if err := e.Close(); err != nil {
		show.Complain("%s", Words(where, err))
	}
}
