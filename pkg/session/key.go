package session

import (
	"errors"
	"fmt"
	"regexp"
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

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// Validate returns an error that wraps [ErrInvalidID] unless both parts are
// 1 to 128 characters of [A-Za-z0-9_-].
func (k Key) Validate() error {
	if !idPattern.MatchString(k.Tenant) {
		return fmt.Errorf("tenant %q: %w: use 1 to 128 letters, digits, _ or -", k.Tenant, ErrInvalidID)
	}
	if !idPattern.MatchString(k.ID) {
		return fmt.Errorf("session id %q: %w: use 1 to 128 letters, digits, _ or -", k.ID, ErrInvalidID)
	}
	return nil
}
