package pkg_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Comments point into this repository (docs/design/), never to a numbered section
// of a document that a reader does not have.
func TestComments_point_into_the_repository(t *testing.T) {
	t.Parallel()
	numbered := regexp.MustCompile(`(?i)(design(\W{1,8}sections?|\W{0,4}§)|\bsections? \d|§ ?\d)`)
	eachSource(t, func(path, text string) {
		if found := numbered.FindStringIndex(text); found != nil {
			t.Errorf("%s: %q: name the page in docs/design/, or say the rule", path, text[found[0]:min(found[1]+20, len(text))])
		}
	})
}

// eachSource reads every Go file of the repository, but this one.
func eachSource(t *testing.T, read func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || entry.Name() == "testdata" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || filepath.Base(path) == "design_comments_test.go":
			return nil
		}
		text, err := os.ReadFile(path)
		read(path, string(text))
		return err
	})
	require.NoError(t, err)
}
