package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrInvalidCheckpoint says that a text is not a checkpoint id of ours.
var ErrInvalidCheckpoint = errors.New("invalid checkpoint id")

// Checkpoint names a committed entry as a place to come back to. Its id cannot
// be guessed: it holds the entry's token.
type Checkpoint struct {
	Session string
	Seq     int64
	Token   string
}

// String returns the opaque id: base64url of session, seq and token.
func (c Checkpoint) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s.%d.%s", c.Session, c.Seq, c.Token))
}

// ParseCheckpoint reads an id made by [Checkpoint.String]. It does not say that
// the entry exists. Errors wrap [ErrInvalidCheckpoint].
func ParseCheckpoint(id string) (Checkpoint, error) {
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %q is not base64url", ErrInvalidCheckpoint, id)
	}
	parts := strings.Split(string(raw), ".")
	if len(parts) != 3 || !validID(parts[0]) || parts[2] == "" {
		return Checkpoint{}, fmt.Errorf("%w: %q", ErrInvalidCheckpoint, id)
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || seq < 1 {
		return Checkpoint{}, fmt.Errorf("%w: %q", ErrInvalidCheckpoint, id)
	}
	c := Checkpoint{Session: parts[0], Seq: seq, Token: parts[2]}
	if c.String() != id {
		return Checkpoint{}, fmt.Errorf("%w: %q is not how it is written", ErrInvalidCheckpoint, id)
	}
	return c, nil
}
