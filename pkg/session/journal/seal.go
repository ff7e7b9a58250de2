package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/adjourn/adjourn/pkg/session"
)

// EntryHash names an entry by its seq and its hash.
type EntryHash struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Seal says whether a record is as it was written. A record that was not read from a store is.
type Seal int

// What reading finds out about a record.
const (
	// SealWhole: the record is as a program wrote it that seals records.
	SealWhole Seal = iota
	// SealNone: it has no seal, or that of an earlier revision: a program wrote it last that
	// knows no seals.
	SealNone
	// SealBroken: it was changed after it was written. It stays so, however often it is written again.
	SealBroken
)

// The seal is the last member of a record's JSON: the revision at which it was written, and the
// hash of the text before it with that revision.
const (
	sealBegins = `,"seal":"`
	sealEnds   = `"}`
	sealBytes  = 16 // of the hash
	brokenSeal = "broken"
)

// AddSeal returns the JSON of a record, an object with members, with the seal of a revision. What its seal said
// when it was read stays so: a record that had none gets none, so that writing it again vouches for nothing.
func AddSeal(record []byte, rev int64, was Seal) []byte {
	if was == SealNone {
		return record
	}
	text := bytes.TrimSuffix(record, []byte("}"))
	hash := sealOf(text, rev)
	if was == SealBroken {
		hash = brokenSeal
	}
	out := make([]byte, 0, len(text)+64)
	out = append(append(out, text...), sealBegins...)
	out = append(strconv.AppendInt(out, rev, 10), '.')
	return append(append(out, hash...), sealEnds...)
}

// TakeSeal returns the JSON of a record of a revision without its seal, and what the seal says.
func TakeSeal(raw []byte, rev int64) ([]byte, Seal) {
	at := bytes.LastIndex(raw, []byte(sealBegins))
	if at < 0 {
		return raw, SealNone
	}
	of, hash, ok := bytes.Cut(raw[at+len(sealBegins):], []byte("."))
	hash, ends := bytes.CutSuffix(hash, []byte(sealEnds))
	if !ok || !ends || bytes.ContainsAny(hash, `"\{}[],:`) {
		return raw, SealNone // of something else in it, or unreadable: then it is an unknown field
	}
	record := append(bytes.Clone(raw[:at]), '}')
	switch {
	case string(of) != strconv.FormatInt(rev, 10):
		return record, SealNone
	case string(hash) != sealOf(raw[:at], rev):
		return record, SealBroken
	}
	return record, SealWhole
}

func sealOf(text []byte, rev int64) string {
	h := sha256.New()
	h.Write(text)
	h.Write(strconv.AppendInt(nil, rev, 10))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:sealBytes])
}

// SealOf returns what was found out about a record, given as a pointer, when it was read.
func SealOf(record any) Seal {
	if k := keptOf(record); k != nil {
		return k.seal
	}
	return SealWhole
}

// LostSeal reports whether a wait has no seal and must have had one: it has a rule or an escalation, which no program that seals
// nothing opens or writes over. So what else it says, as who has voted, is as good as changed.
func LostSeal(r *WaitRecord) bool {
	return SealOf(r) == SealNone && (slices.Contains(r.Wait.Needs, session.NeedsAnswerRule) || slices.Contains(r.Wait.Needs, session.NeedsEscalation))
}

// SetSeal notes in a record, given as a pointer, what its seal says. Copies of the record have it too.
func SetSeal(record any, s Seal) {
	k := keptOf(record)
	switch {
	case !keeps(record) || k == nil && s == SealWhole:
	case k == nil:
		keep(record, &kept{seal: s})
	default:
		k.seal = s
	}
}

// HasUnknown reports whether a record, given as a pointer, was read with fields that this program
// does not have.
func HasUnknown(record any) bool {
	k := keptOf(record)
	return k != nil && len(k.fields)+len(k.inner) > 0
}

// HashOf returns the hash that an entry has once it is stored.
func HashOf(e *Entry) (string, error) {
	w, _ := textWriters.Get().(*textWriter)
	defer w.done()
	text, err := w.write(e)
	if err != nil {
		return "", err
	}
	return hash(text), nil
}
