// Package goldentest holds what is stored to the files in which it was stored once.
package goldentest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// update writes golden files that do not exist yet. It never changes one that
// does: what is stored must be read for ever.
var update = flag.Bool("update", false, "write golden files that do not exist yet")

// File requires that now is what the file at path holds, and returns that. The
// path is below the test's folder; a file that is missing is written with -update.
func File(t *testing.T, path string, now []byte) []byte {
	t.Helper()
	stored, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *update {
		require.NoError(t, os.WriteFile(path, now, 0o644))
		return now
	}
	require.NoError(t, err, "a golden file that is new is written with: go test -run '%s' . -update", t.Name())
	require.Equal(t, string(stored), string(now), "the stored form must not change: make the code fit the file")
	return stored
}

// JSON requires that the file at path holds value, indented, and that what is
// read from it is value again: in the compact form that is stored, for the file's
// indentation would be part of raw JSON fields, and with fields that only a later
// program knows.
func JSON(t *testing.T, path string, value any) {
	t.Helper()
	now, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	var stored bytes.Buffer
	require.NoError(t, json.Compact(&stored, File(t, path, append(now, '\n'))))

	got := load(t, value, stored.Bytes())
	require.Equal(t, value, got)
	again, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, stored.String(), string(again), "what was read is written the same")

	newer := append([]byte(`{"zzNew":{"a":[1]},"zzOther":null,`), stored.Bytes()[1:]...)
	require.Equal(t, value, load(t, value, newer))
}

// load reads a value of the same type as another.
func load(t *testing.T, like any, stored []byte) any {
	t.Helper()
	value := reflect.New(reflect.TypeOf(like))
	require.NoError(t, json.Unmarshal(stored, value.Interface()))
	return value.Elem().Interface()
}

// Complete requires that every file in dir whose name ends so has a case of that
// name: one without is never checked.
func Complete[T any](t *testing.T, dir, ending string, cases map[string]T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+ending))
	require.NoError(t, err)
	require.Len(t, files, len(cases))
	for _, file := range files {
		require.Contains(t, cases, strings.TrimSuffix(filepath.Base(file), ending), "a golden file without a case")
	}
}
