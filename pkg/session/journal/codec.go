package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/adjourn/adjourn/pkg/session"
)

// ErrUnknownFormat says that an entry was written by a newer program, or is not an entry.
var ErrUnknownFormat = errors.New("unknown entry format")

// compressFrom is the size in bytes from which an entry is compressed: below it zstd saves little.
const compressFrom = 1024

// MaxEntryBytes bounds the JSON of an entry: a larger one is neither written nor read.
const MaxEntryBytes = 256 << 20

// A block of a zstd frame takes at least minBlock bytes and unpacks to at most
// maxBlock, so a payload's length alone bounds what it can hold.
const (
	minBlock = 4
	maxBlock = 128 << 10
)

// maxDecoded is how deeply nested a text a decoder reads.
const maxDecoded = 10_000

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

var newEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(128<<10))
})

var newDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxEntryBytes))
})

// Encode returns the stored form of an entry (JSON, compressed with zstd from
// 1 KB on) and sets its Hash. An entry that could not be read again is refused
// with [ErrUnfitValue]. It is safe for concurrent use on different entries.
func Encode(e *Entry) ([]byte, error) { return encode(e, MaxEntryBytes) }

func encode(e *Entry, most int) ([]byte, error) {
	w, _ := textWriters.Get().(*textWriter)
	defer w.done()
	text, err := w.write(e)
	if err != nil {
		return nil, fmt.Errorf("encode entry %d: %w", e.Seq, err)
	}
	if len(text) > most { // Decode would not unpack it
		return nil, fmt.Errorf("encode entry %d: %w: it has %d bytes, and %d is the most", e.Seq, ErrUnfitValue, len(text), most)
	}
	if nesting(text) > maxDecoded {
		return nil, fmt.Errorf("encode entry %d: %w: it holds a value that is nested too deeply", e.Seq, ErrUnfitValue)
	}
	e.Hash = hash(text)
	if len(text) < compressFrom {
		return bytes.Clone(text), nil
	}
	encoder, err := newEncoder()
	if err != nil {
		return nil, fmt.Errorf("encode entry %d: %w", e.Seq, err)
	}
	return encoder.EncodeAll(text, make([]byte, 0, len(text)/2)), nil
}

// textWriter writes the text of one entry after the other into the same room: most texts are
// compressed, and then nobody needs them any more.
type textWriter struct {
	text bytes.Buffer
	json *json.Encoder
}

var textWriters = sync.Pool{New: func() any {
	w := new(textWriter)
	w.json = json.NewEncoder(&w.text)
	return w
}}

// write returns the JSON of an entry as [json.Marshal] does. It is there until done.
func (w *textWriter) write(e *Entry) ([]byte, error) {
	if err := w.json.Encode(e); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(w.text.Bytes(), []byte("\n")), nil
}

func (w *textWriter) done() {
	if w.text.Cap() <= roomKept {
		w.text.Reset()
		textWriters.Put(w)
	}
}

// Decode reads what [Encode] wrote and sets the entry's Hash. An entry of an
// unknown version or kind is refused by name with an error that wraps [ErrUnknownFormat].
func Decode(payload []byte) (Entry, error) {
	text := payload
	if bytes.HasPrefix(payload, zstdMagic) {
		decoder, err := newDecoder()
		if err != nil {
			return Entry{}, fmt.Errorf("decode entry: %w", err)
		}
		if err := checkFrame(payload); err != nil {
			return Entry{}, fmt.Errorf("decode entry: %w: %w", ErrUnknownFormat, err)
		}
		text, err = decoder.DecodeAll(payload, nil)
		if err != nil {
			return Entry{}, fmt.Errorf("decode entry: %w: %w", ErrUnknownFormat, err)
		}
	}
	var stored struct {
		Entry
		// Limits was in entries before format 1 was fixed; it said what was left.
		Limits json.RawMessage `json:"limits"`
	}
	err := json.Unmarshal(text, &stored)
	e := stored.Entry
	if err != nil {
		// A newer version may have changed the type of a field: the version
		// names the reason better than the field does.
		var version struct {
			V int `json:"v"`
		}
		if json.Unmarshal(text, &version) == nil && version.V > Format {
			return Entry{}, newerFormat(version.V)
		}
		return Entry{}, fmt.Errorf("decode entry: %w: %w", ErrUnknownFormat, err)
	}
	if e.V > Format {
		return Entry{}, newerFormat(e.V)
	}
	if e.V != Format {
		return Entry{}, fmt.Errorf("decode entry: %w: version %d", ErrUnknownFormat, e.V)
	}
	if stored.Limits != nil {
		return Entry{}, fmt.Errorf("decode entry %d: %w: it was written before format 1 was fixed, and nothing reads that any more: start with a new data file, or a new table", e.Seq, ErrUnknownFormat)
	}
	if !known(e.Kind) {
		return Entry{}, fmt.Errorf("decode entry %d: %w: kind %q", e.Seq, ErrUnknownFormat, e.Kind)
	}
	if err := e.checkNeeds(); err != nil {
		return Entry{}, fmt.Errorf("decode entry: %w", err)
	}
	e.Hash = hash(text)
	return e, nil
}

// checkFrame refuses a frame that announces more than a payload of its length
// can hold: the decoder makes room for what is announced before it reads on.
func checkFrame(payload []byte) error {
	var header zstd.Header
	if err := header.Decode(payload); err != nil {
		return err
	}
	if header.HasFCS && header.FrameContentSize > uint64(len(payload)/minBlock+1)*maxBlock {
		return zstd.ErrDecoderSizeExceeded
	}
	return nil
}

func newerFormat(v int) error {
	return fmt.Errorf("decode entry: %w: version %d is newer than this program reads (%d): use a newer adjourn", ErrUnknownFormat, v, Format)
}

func known(k session.Kind) bool {
	switch k {
	case session.KindStarted, session.KindReplied, session.KindStepped, session.KindSuspended, session.KindResumed, session.KindDelayed, session.KindInterrupted,
		session.KindCancelled, session.KindCompleted, session.KindFailed, session.KindRestored, session.KindForked, session.KindDeleted:
		return true
	}
	return false
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	var out [(sha256.Size*8 + 5) / 6]byte
	base64.RawURLEncoding.Encode(out[:], sum[:])
	return string(out[:])
}
