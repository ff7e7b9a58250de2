package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Record keeps the pause file true: it holds the last manifest of a paused
// session, and goes when that session comes to an end. Not being able to is
// said, and changes nothing.
func Record(s *screen.Screen, where *place.Place, v View) {
	if where.Remote() {
		return // there is no data file for it to be beside
	}
	path := filepath.Join(filepath.Dir(where.DataPath()), place.PauseFile)
	var err error
	switch v.Outcome {
	case session.OutcomePaused:
		err = writePause(path, NewManifest(v))
	case session.OutcomeCompleted, session.OutcomeFailed, session.OutcomeCancelled:
		err = removePause(path, v.ID)
	case session.OutcomeInterrupted, session.OutcomeRunning, session.OutcomeError:
	}
	if err != nil {
		s.Complain("%s was not updated: %v", path, err)
	}
}

// Ended is [Record] of a session that has come to an end, whichever it is.
func Ended(s *screen.Screen, where *place.Place, id string) {
	Record(s, where, View{Session: client.Session{ID: id, Outcome: session.OutcomeCompleted}})
}

func writePause(path string, m Manifest) error {
	text, err := screen.EncodeJSON(m)
	if err != nil {
		return err
	}
	return private.Write(path, text) // arguments of tools may be secrets
}

// maxPause is more than a manifest has: it holds at most 80 waits.
const maxPause = 64 << 20

// removePause removes the file if it tells of that session.
func removePause(path, id string) error {
	text, err := private.Read(path, maxPause)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old Manifest
	if json.Unmarshal(text, &old) != nil || old.SessionID != id {
		return nil // not ours to remove
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}
