package session

import (
	"errors"
	"fmt"
)

// DefaultTenant is the tenant of the embedded engine.
const DefaultTenant = "default"

// ErrInvalidID says that a session id or tenant holds characters we do not take.
var ErrInvalidID = errors.New("invalid id")

// Key names one session: ids are unique within a tenant.
type Key struct {
	Tenant string `json:"tenant"`
	ID     string `json:"session"`
}

// String returns tenant/id, for errors and logs.
func (k Key) String() string { return k.Tenant + "/" + k.ID }

// validID is ^[A-Za-z0-9_-]{1,128}$; every write of every step asks it, so it is no pattern.
func validID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// Validate returns an error that wraps [ErrInvalidID] unless both parts are
// 1 to 128 characters of [A-Za-z0-9_-].
func (k Key) Validate() error {
	if !validID(k.Tenant) {
		return fmt.Errorf("tenant %q: %w: use 1 to 128 letters, digits, _ or -", k.Tenant, ErrInvalidID)
	}
	if !validID(k.ID) {
		return fmt.Errorf("session id %q: %w: use 1 to 128 letters, digits, _ or -", k.ID, ErrInvalidID)
	}
	return nil
}
