package owned

import "fmt"

// Birth tells the file at a path from every other that is, or was, at that path: by
// its number in its file system and the moment it was made, where the system tells
// them. A file that is moved keeps it; a copy has another, and nobody can choose it.
// "" if nothing is known.
func Birth(path string) string {
	number, nanoseconds, ok := birthOf(path)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%d", number, nanoseconds)
}
