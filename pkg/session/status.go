package session

// Status says what state a session is in.
type Status string

// The statuses.
const (
	StatusRunning     Status = "running"
	StatusSuspended   Status = "suspended"
	StatusInterrupted Status = "interrupted"
	StatusCompleted   Status = "completed"
	StatusFailed      Status = "failed"
	StatusCancelled   Status = "cancelled"
)

// Statuses lists every status in the order of the drawing in the package comment.
func Statuses() []Status {
	return []Status{StatusRunning, StatusSuspended, StatusInterrupted, StatusCompleted, StatusFailed, StatusCancelled}
}

// transitions is the table in docs/design/README.md; "" is a session that does not exist yet.
var transitions = map[Status][]Status{
	"":                {StatusRunning, StatusSuspended, StatusInterrupted},
	StatusRunning:     {StatusRunning, StatusSuspended, StatusInterrupted, StatusCompleted, StatusFailed, StatusCancelled},
	StatusSuspended:   {StatusRunning, StatusSuspended, StatusInterrupted, StatusFailed, StatusCancelled},
	StatusInterrupted: {StatusRunning, StatusSuspended, StatusFailed, StatusCancelled},
	StatusCompleted:   {StatusRunning, StatusSuspended},
	StatusFailed:      {StatusRunning, StatusSuspended},
	StatusCancelled:   {StatusRunning, StatusSuspended},
}

// CanBecome reports whether an entry may take a session from s to next.
func (s Status) CanBecome(next Status) bool {
	for _, t := range transitions[s] {
		if t == next {
			return true
		}
	}
	return false
}

// Ended reports whether the task is over: completed, failed or cancelled.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Resting reports whether the session continues only after a caller's request: suspended,
// interrupted or ended.
func (s Status) Resting() bool { return s != StatusRunning }
