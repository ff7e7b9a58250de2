package pkg_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// documents returns every page of the repository: path from its root to text.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "llms.txt", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, name := range found {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			path, err := filepath.Rel("..", name)
			require.NoError(t, err)
			pages[path] = string(text)
		}
	}
	return pages
}

// sections returns the anchors that GitHub makes of a page's headings.
func sections(page string) map[string]bool {
	found := map[string]bool{}
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		heading := strings.TrimLeft(line, "#")
		if code || heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading))] = true
	}
	return found
}

// Every link of a document leads to a file of the repository, and to a section
// that the page has. A link to another site is not looked at.
func TestDocs_links(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for name, text := range pages {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, section, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
				_, err := os.Stat(filepath.Join("..", path))
				require.NoError(t, err, "%s links to %s", name, found[1])
			}
			if section != "" {
				page, isPage := pages[path]
				require.True(t, isPage, "%s links to a section of %s, which is no page", name, path)
				require.Contains(t, sections(page), section, "%s links to %s", name, found[1])
			}
		}
	}
}

// What everybody reads first stays short: details have pages of their own.
func TestDocs_sizes(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	for name, limit := range map[string]int{"README.md": 8_000, "CONTRIBUTING.md": 10_000} {
		require.Less(t, len(pages[name]), limit, "%s has %d bytes: move details to docs/", name, len(pages[name]))
	}
}

// The map in CONTRIBUTING.md names every room.
func TestDocs_map(t *testing.T) {
	t.Parallel()
	contributing := documents(t)["CONTRIBUTING.md"]
	for room := range plan.floors {
		if strings.Contains(contributing, "`"+filepath.ToSlash(filepath.Dir(room))+"/…`") {
			continue // functions/…, localstack/…, pkg/store/dynamostore/internal/…
		}
		require.Contains(t, contributing, "`"+room+"`", "the map in CONTRIBUTING.md lacks %s", room)
	}
}

// Every make target that a document names is there, and docs/tests.md names every
// target that make lists.
func TestDocs_make_targets(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	named := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	pages := documents(t)
	for name, text := range pages {
		for _, target := range named.FindAllStringSubmatch(text, -1) {
			require.Contains(t, "\n"+string(makefile), "\n"+target[1]+":", "%s names make %s", name, target[1])
		}
	}
	_, targets, found := strings.Cut(pages["docs/tests.md"], "\n## Targets\n")
	require.True(t, found)
	targets, _, _ = strings.Cut(targets, "\n## ")
	listed := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(targets, -1) {
		for word := range strings.FieldsSeq(strings.Trim(code, "`")) {
			listed[word] = true
		}
	}
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(string(makefile), -1) {
		if target[1] != "help" {
			require.True(t, listed[target[1]], "docs/tests.md does not list make %s", target[1])
		}
	}
}

// Every file that a document names by its path from the root is there.
func TestDocs_files(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("`((?:pkg|internal|cmd|functions|agents|model|scale|examples|localstack)/[^` *]+\\.(?:go|yaml))`")
	total := 0
	for name, text := range documents(t) {
		if name == "CHANGELOG.md" {
			continue
		}
		for _, file := range named.FindAllStringSubmatch(text, -1) {
			total++
			_, err := os.Stat(filepath.Join("..", file[1]))
			require.NoError(t, err, "%s names %s", name, file[1])
		}
	}
	require.Greater(t, total, 40)
}

// llms.txt leads to every page.
func TestDocs_llms(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	for name := range pages {
		if name != "llms.txt" {
			require.Contains(t, pages["llms.txt"], "]("+name+")", "llms.txt lacks %s", name)
		}
	}
}
