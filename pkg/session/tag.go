package session

import (
	"fmt"
	"slices"
)

const (
	// MaxTags is how many tags a session may have.
	MaxTags = 16
	// MaxTag is how many characters a tag may have.
	MaxTag = 64
)

// ValidateTags returns an error unless they can be a session's tags: no more
// than [MaxTags], each once, of 1 to [MaxTag] letters, digits and _ . : / @ = + -.
func ValidateTags(tags []string) error {
	if len(tags) > MaxTags {
		return fmt.Errorf("%d tags, and %d is the most", len(tags), MaxTags)
	}
	for i, tag := range tags {
		if !validTag(tag) {
			return fmt.Errorf("tag %.70q: use 1 to %d letters, digits, or one of _ . : / @ = + -", tag, MaxTag)
		}
		if slices.Contains(tags[:i], tag) {
			return fmt.Errorf("tag %q is there twice", tag)
		}
	}
	return nil
}

func validTag(tag string) bool {
	if tag == "" || len(tag) > MaxTag {
		return false
	}
	for i := range len(tag) {
		c := tag[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '/' || c > ':') && c != '_' && c != '.' && c != '@' && c != '=' && c != '+' && c != '-' {
			return false
		}
	}
	return true
}
