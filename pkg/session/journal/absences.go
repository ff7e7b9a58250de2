package journal

import "github.com/adjourn/adjourn/pkg/session"

// AbsencesRecord names the record of a tenant that holds [Absences].
const AbsencesRecord = "away"

// Absences say who stands in for whom in a tenant.
type Absences struct {
	// StandIns in the order they were set, one for each person. Some may be over.
	StandIns []session.StandIn `json:"standIns,omitempty"`
	// Changes are the newest, the oldest first.
	Changes []session.StandInChange `json:"changes,omitempty"`
}
