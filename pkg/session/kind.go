package session

// Kind says what an entry records.
type Kind string

// The kinds of entry.
const (
	KindStarted     Kind = "started"
	KindReplied     Kind = "replied"
	KindStepped     Kind = "stepped"
	KindSuspended   Kind = "suspended"
	KindResumed     Kind = "resumed"
	KindDelayed     Kind = "delayed"
	KindInterrupted Kind = "interrupted"
	KindCancelled   Kind = "cancelled"
	KindCompleted   Kind = "completed"
	KindFailed      Kind = "failed"
	KindRestored    Kind = "restored"
	KindForked      Kind = "forked"
	KindDeleted     Kind = "deleted"
)

// Kinds lists every kind of format 1.
func Kinds() []Kind {
	return []Kind{
		KindStarted, KindReplied, KindStepped, KindSuspended, KindResumed, KindDelayed, KindInterrupted,
		KindCancelled, KindCompleted, KindFailed, KindRestored, KindForked, KindDeleted,
	}
}
