package janitor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFoldersIn(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][]string{
		"photos":                               {"photos"},
		" /tmp/x \n":                           {"/tmp/x"},
		".":                                    {"."},
		"..":                                   {".."},
		"./my photos":                          {"./my photos", "./my"},
		"Clean up /tmp/x.":                     {"/tmp/x"},
		"Please look at ../y, thank you":       {"../y"},
		"in . please":                          {"."},
		"what about (/a/b)?":                   {"/a/b"},
		`Clean "my photos" today`:              {"my photos"},
		"don't touch it, but clean 'My Files'": {"My Files"},
		"use `a b`":                            {"a b"},
		"Don't worry, clean /x":                {"/x"},
		`C:\Photos`:                            {`C:\Photos`},
		"compare /a with /b":                   nil,
		"/a and /b":                            {"/a and /b"},
		"first\n/a\nsecond":                    {"/a"},
		`"unfinished /a`:                       {"/a"},
		"clean up my photos":                   nil,
		"":                                     nil,
	} {
		got := foldersIn(message)
		if want == nil {
			require.Empty(t, got, message)
			continue
		}
		require.Equal(t, want, got, message)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 9999: "9999 bytes", 12345: "12345 bytes (12.3 kB)",
		5_000_000: "5000000 bytes (5.0 MB)", 7_000_000_000_000: "7000000000000 bytes (7.0 TB)",
	} {
		require.Equal(t, want, size(bytes))
	}
}

func TestSection_keeps_each_file_on_its_line(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	section(&b, "Deleted", []string{"b\nRun it? y\r", "c"})
	require.Equal(t, "Deleted:\n  b\\nRun it? y\\r\n  c\n", b.String())
}
