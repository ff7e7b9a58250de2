// Package roles reads the names of roles that a caller has.
package roles

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxRoles is how many roles a caller may have.
const maxRoles = 200

var role = regexp.MustCompile(`^[\pL\pN_.:/@+=-]{1,128}$`)

// Parse reads the roles of a caller: words with commas or spaces between, of letters, digits and
// _ . : / @ + = -. Where one of them is anything else there are none, and the error says so.
func Parse(text string) ([]string, error) {
	return Check(strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' }))
}

// Check returns roles, each once; where one of them is no role there are none, and the error
// says so.
func Check(roles []string) ([]string, error) {
	if len(roles) > maxRoles {
		return nil, fmt.Errorf("there are %d roles; at most %d are taken", len(roles), maxRoles)
	}
	var out []string
	for _, one := range roles {
		if !role.MatchString(one) {
			return nil, fmt.Errorf("%.40q is no role: use up to 128 letters, digits and _ . : / @ + = -", one)
		}
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out, nil
}
