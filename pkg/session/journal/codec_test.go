package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

func sized(n int) journal.Entry {
	e := entry(3, session.KindStepped, session.StatusRunning)
	e.Messages = []llm.Message{llm.User("")}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	// "text" is left out while it is empty.
	e.Messages[0].Parts[0].Text = strings.Repeat("x", n-len(text)-len(`,"text":""`))
	return e
}

func TestEncode_compresses_from_1_KB(t *testing.T) {
	t.Parallel()
	for size, compressed := range map[int]bool{700: false, 1023: false, 1024: true, 2048: true, 1 << 20: true} {
		e := sized(size)
		text, err := json.Marshal(e)
		require.NoError(t, err)
		require.Len(t, text, size)
		stored, err := journal.Encode(&e)
		require.NoError(t, err)
		require.Equal(t, compressed, bytes.HasPrefix(stored, magic), "%d bytes", size)
		require.LessOrEqual(t, len(stored), size)
		got, err := journal.Decode(stored)
		require.NoError(t, err)
		require.Equal(t, e, got)
	}
}

func TestEncode_hash_is_that_of_the_text_and_chains(t *testing.T) {
	t.Parallel()
	for _, size := range []int{800, 4096} {
		first := sized(size)
		text, err := json.Marshal(first)
		require.NoError(t, err)
		_, err = journal.Encode(&first)
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		require.Equal(t, base64.RawURLEncoding.EncodeToString(sum[:]), first.Hash)

		second := sized(size)
		second.Seq, second.Prev = 4, first.Hash
		stored, err := journal.Encode(&second)
		require.NoError(t, err)
		got, err := journal.Decode(stored)
		require.NoError(t, err)
		require.Equal(t, first.Hash, got.Prev)
		require.Equal(t, second.Hash, got.Hash)
		require.NotEqual(t, first.Hash, second.Hash)
	}
}

func TestEncode_refuses_what_has_no_JSON(t *testing.T) {
	t.Parallel()
	e := entry(3, session.KindStepped, session.StatusRunning)
	e.Output = json.RawMessage(`{`)
	_, err := journal.Encode(&e)
	require.ErrorContains(t, err, "encode entry 3")
}

func TestDecode_refuses_by_name(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, says string }{
		"newer":                         {`{"v":2,"seq":1,"kind":"started"}`, "version 2 is newer than this program reads (1): use a newer adjourn"},
		"newer_with_another_shape":      {`{"v":3,"seq":"one"}`, "version 3 is newer"},
		"newer_with_an_unknown_kind":    {`{"v":2,"seq":1,"kind":"pondered"}`, "version 2 is newer"},
		"no_version":                    {`{"seq":1,"kind":"started"}`, "version 0"},
		"negative_version":              {`{"v":-1,"kind":"started"}`, "version -1"},
		"unknown_kind":                  {`{"v":1,"seq":7,"kind":"pondered"}`, `entry 7: unknown entry format: kind "pondered"`},
		"of_before_the_first_release":   {`{"v":1,"seq":7,"kind":"stepped","limits":{"steps":49}}`, "entry 7: unknown entry format: it was written before format 1 was fixed"},
		"no_kind":                       {`{"v":1,"seq":7}`, `kind ""`},
		"null":                          {`null`, "version 0"},
		"empty":                         {``, "unexpected end"},
		"text":                          {`hello`, "invalid character"},
		"wrong_type":                    {`{"v":1,"seq":"one"}`, "cannot unmarshal"},
		"cut":                           {`{"v":1,"seq":1,"kind":"sta`, "unexpected end"},
		"two_entries":                   {`{"v":1,"kind":"started"}{}`, "after top-level value"},
		"magic_only":                    {string(magic), ""},
		"frame_that_announces_too_much": {string(magic) + "\xe0\x00\x00\x00\x10\x00\x00\x00\x00\x01\x00\x00", "exceeds configured limit"},
		"broken_frame":                  {string(magic) + "\x60\x00\x01garbage", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := journal.Decode([]byte(c.payload))
			require.ErrorIs(t, err, journal.ErrUnknownFormat)
			require.ErrorContains(t, err, c.says)
			require.Zero(t, e)
		})
	}
}

func TestDecode_every_byte_of_a_compressed_entry_may_be_wrong(t *testing.T) {
	t.Parallel()
	e := sized(3000)
	stored, err := journal.Encode(&e)
	require.NoError(t, err)
	for i := range stored {
		damaged := bytes.Clone(stored)
		damaged[i] ^= 0x55
		if got, err := journal.Decode(damaged); err != nil {
			require.ErrorIs(t, err, journal.ErrUnknownFormat)
			require.Zero(t, got)
		}
		_, err := journal.Decode(stored[:i])
		require.Error(t, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, value := range entries() {
		if e, ok := value.(journal.Entry); ok {
			stored, err := journal.Encode(&e)
			require.NoError(f, err)
			f.Add(stored)
		}
	}
	big := sized(64 << 10)
	stored, err := journal.Encode(&big)
	require.NoError(f, err)
	f.Add(stored)
	f.Add([]byte(`{"v":2}`))
	f.Add(append(bytes.Clone(magic), 0xe0, 0, 0, 0, 0x10, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, err := journal.Decode(payload)
		if err != nil {
			require.ErrorIs(t, err, journal.ErrUnknownFormat)
			return
		}
		again, err := journal.Encode(&e)
		if err != nil {
			return // years beyond 9999 can be read and not be written
		}
		same, err := journal.Decode(again)
		require.NoError(t, err)
		require.Equal(t, e.Hash, same.Hash)
		stable, err := journal.Encode(&same)
		require.NoError(t, err)
		require.Equal(t, again, stable)
	})
}

// The window is part of what a small Lambda function has to hold in memory.
func TestEncode_window_is_small(t *testing.T) {
	t.Parallel()
	e := sized(1 << 20)
	stored, err := journal.Encode(&e)
	require.NoError(t, err)
	var header zstd.Header
	require.NoError(t, header.Decode(stored))
	require.True(t, header.HasFCS)
	require.EqualValues(t, 1<<20, header.FrameContentSize)
}

func BenchmarkEncode(b *testing.B) {
	e := sized(2048)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := journal.Encode(&e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	e := sized(2048)
	stored, err := journal.Encode(&e)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := journal.Decode(stored); err != nil {
			b.Fatal(err)
		}
	}
}
