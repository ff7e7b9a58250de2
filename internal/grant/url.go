package grant

import (
	"errors"
	"net/url"
	"strings"
)

// CheckURL refuses what is no address of a page for people: https:// or http://, with a host, without
// a user, a query or a fragment.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || strings.ContainsAny(text, "?# '\"<>\\") {
		return errors.New("an address of a page begins with https:// or http://, and has no user, query or fragment")
	}
	return nil
}
