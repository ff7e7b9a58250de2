package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// glossaryRow is one row of docs/glossary.md: a word, and what is not said instead of it.
type glossaryRow struct {
	word string
	not  []string
}

// glossary reads the tables of docs/glossary.md.
func glossary(t *testing.T) []glossaryRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "glossary.md"))
	require.NoError(t, err)
	var rows []glossaryRow
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") || strings.TrimSpace(cells[len(cells)-1]) == "not" {
			continue
		}
		row := glossaryRow{word: strings.TrimSpace(cells[0])}
		for word := range strings.SplitSeq(cells[len(cells)-1], ",") {
			if word = strings.TrimSpace(word); word != "" {
				row.not = append(row.not, word)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Each word stands in the glossary once. What is not said instead of it is no word of the
// glossary itself.
func TestGlossary_is_whole(t *testing.T) {
	t.Parallel()
	rows := glossary(t)
	require.Greater(t, len(rows), 40)
	var words, not []string
	for _, row := range rows {
		require.NotContains(t, words, row.word)
		words, not = append(words, row.word), append(not, row.not...)
	}
	for _, word := range []string{
		"session", "task", "run", "step", "entry", "journal", "HEAD", "checkpoint", "wait", "answer", "approval", "signal", "lease",
		"claim", "outcome", "paused", "pause", "decision", "continuation", "fuse", "wake", "message", "sweep", "dead letter", "tenant", "caller",
	} {
		require.Contains(t, words, word)
	}
	for i, word := range not {
		require.NotContains(t, words, word)
		require.Equal(t, i, slices.Index(not, word), "%s stands there twice", word)
	}
}

// Documents, the OpenAPI document, the template and the texts of the program (errors,
// help) use the words of the glossary.
func TestGlossary_is_kept(t *testing.T) {
	t.Parallel()
	var forbidden []string
	instead := map[string]string{}
	for _, row := range glossary(t) {
		for _, word := range row.not {
			forbidden = append(forbidden, regexp.QuoteMeta(strings.ToLower(word)))
			instead[strings.ToLower(word)] = row.word
		}
	}
	pattern := regexp.MustCompile(`(?i)\b(` + strings.Join(forbidden, "|") + `)s?\b`)
	check := func(path, text string) {
		for _, found := range pattern.FindAllStringSubmatchIndex(text, -1) {
			word := text[found[2]:found[3]]
			t.Errorf("%s: %q: the glossary says %q: …%s…", path, word, instead[strings.ToLower(word)], text[max(found[0]-40, 0):min(found[1]+40, len(text))])
		}
	}
	for path, text := range documents(t) {
		if path != "docs/glossary.md" && path != "CHANGELOG.md" {
			check(path, text)
		}
	}
	for _, name := range []string{"pkg/httpapi/openapi.yaml", "template.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		check(name, string(text))
	}
	texts := 0
	eachSource(t, func(path, source string) {
		of := func(folder string) bool { return strings.HasPrefix(path, "../"+folder+"/") }
		if strings.HasSuffix(path, "_test.go") || !slices.ContainsFunc([]string{"pkg", "internal", "cmd", "agents", "functions", "localstack"}, of) {
			return
		}
		for _, text := range literals(t, path, source) {
			texts++
			check(path, text)
		}
	})
	require.Greater(t, texts, 2000)
}

// literals returns the strings of a Go file that may be read by people: all but
// import paths and tags.
func literals(t *testing.T, path, source string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	require.NoError(t, err)
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.Contains(text, " ") {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}
