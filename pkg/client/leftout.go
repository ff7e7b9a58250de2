package client

// LeftOut says that a value is not in an answer, because the answer is larger
// than the server can send with it: Lambda's are 6 MB at most. In its place
// stands the JSON string "[left out: N bytes, digest D]". Only the list says for
// sure that it does: a tool could have written the same words.
type LeftOut struct {
	// At is where, as a JSON pointer from the object that has the list. It is empty
	// for a wait of the inbox that could not be read, or is too large for a list: it
	// has its ids, its state and when it was opened, and nothing else.
	At string `json:"at"`
	// Bytes is how long the value is: JSON, a text in UTF-8, or what base64 stands for.
	Bytes int64 `json:"bytes"`
	// Digest is the value's, as the session package makes it of JSON; of anything
	// else it is the base64url SHA-256 of its bytes.
	Digest string `json:"digest"`
}
