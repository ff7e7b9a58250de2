package engine

import "github.com/adjourn/adjourn/pkg/session"

// Deleted is the last entry a session ever has, whatever its status, which it keeps. It is removed
// with the session; what it is for is that nobody else writes an entry at its place.
func Deleted(s *session.Session, st Stamp) Move {
	st.KeepsLease = false
	m := seal(s, next(s, session.KindDeleted, s.Status, st), s.Rules.Agent)
	m.MovesHead, m.Wake = true, nil
	return m
}
