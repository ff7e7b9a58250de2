package app

import (
	"crypto/rand"
	"encoding/base32"
)

// idBytes makes 96 random bits: what an entry's token holds.
const idBytes = 12

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID returns a random id of 20 lower-case letters and digits. It never begins
// with a dash, so that it can be an argument of a command.
func NewID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends when there is no randomness
	return idEncoding.EncodeToString(b[:])
}
