package session

// SendOutcome says what became of a message that was sent to a session.
type SendOutcome string

// The outcomes of a message.
const (
	// SendQueued: the session works; its next step takes the message in.
	SendQueued SendOutcome = "queued"
	// SendAnswered: the session waited for a message, and this is the answer.
	SendAnswered SendOutcome = "answered"
	// SendAbandoned: the session waited for something else, which its agent's policy abandons for a
	// message; it goes on with the message.
	SendAbandoned SendOutcome = "abandoned"
	// SendStarted: the session had ended; the message begins its next turn.
	SendStarted SendOutcome = "started"
)
