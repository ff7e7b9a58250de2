package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	filePerm = 0o644
	// patience is how long a writer waits for another one that holds the file. A
	// frozen process may hold it for ever, so what comes after must be safe
	// without: see appendLine and appendOnce.
	patience = 2 * time.Second
)

// appendLine adds one line to a file and syncs it. The line goes out in one
// write at the end of the file, so that writers do not mix their lines; a last
// line that was torn, by a crash of whoever wrote it, is ended first.
func appendLine(ctx context.Context, path, text string) error {
	if err := oneLine(text); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, filePerm)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, file)
	if err == nil {
		err = addLine(file, text)
		unlock()
	}
	return errors.Join(err, file.Close())
}

func addLine(file *os.File, text string) error {
	_, torn, err := tail(file)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(lineAfter(torn, text)); err != nil {
		return err
	}
	return file.Sync()
}

// claim is one record of the file beside that of append_once: which key owns
// which line, and where it was to go.
type claim struct {
	Key  string `json:"key"`
	At   int64  `json:"at"`
	Line string `json:"line"`
}

// claimsOf names the file beside path that remembers the keys.
func claimsOf(path string) string { return path + ".keys" }

// appendOnce adds one line to a file unless one was added for this key.
//
// To look and then append would write twice when a process dies or is frozen in
// between. So a key first claims a place: a record is added to the file beside,
// and of several records of one key the first counts. Everybody reads the same
// records, so everybody writes the same bytes to the same place, as often as
// they like. The lock is for those who append to path by other means.
func appendOnce(ctx context.Context, path, key, text string) (err error) {
	if err := oneLine(text); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	claims, err := os.OpenFile(claimsOf(path), os.O_RDWR|os.O_CREATE|os.O_APPEND, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claims.Close()) }()
	unlock, err := lock(ctx, file)
	if err != nil {
		return err
	}
	defer unlock()

	mine, at, err := findClaim(claims, key)
	if err != nil {
		return err
	}
	if mine == nil {
		if mine, at, err = stake(file, claims, key, text); err != nil {
			return err
		}
	}
	return put(file, claims, mine.Line, at)
}

// stake adds a claim and returns the one that counts, which may be another
// process's.
func stake(file, claims *os.File, key, text string) (*claim, int64, error) {
	size, torn, err := tail(file)
	if err != nil {
		return nil, 0, err
	}
	record, err := json.Marshal(claim{Key: key, At: size, Line: lineAfter(torn, text)})
	if err != nil {
		return nil, 0, err
	}
	// The newline in front ends a record that was torn.
	if _, err := fmt.Fprintf(claims, "\n%s\n", record); err != nil {
		return nil, 0, err
	}
	mine, at, err := findClaim(claims, key)
	if err == nil && mine == nil {
		err = fmt.Errorf("%s: the claim just written is not there", claims.Name())
	}
	return mine, at, err
}

// put writes the line to its place. Its end comes first, so that those who
// append come after it from now on; the claim must be on the disk before the
// line may be, else a power failure could leave a line that nobody claims.
func put(file, claims *os.File, line string, at int64) error {
	if _, err := file.WriteAt([]byte("\n"), at+int64(len(line))-1); err != nil {
		return err
	}
	if err := claims.Sync(); err != nil {
		return err
	}
	if _, err := file.WriteAt([]byte(line), at); err != nil {
		return err
	}
	return file.Sync()
}

// findClaim reads all claims and returns the one of key with its place. A claim goes
// where it wanted to, but never before the end of those that were earlier.
func findClaim(claims *os.File, key string) (*claim, int64, error) {
	all, err := io.ReadAll(io.NewSectionReader(claims, 0, 1<<62))
	if err != nil {
		return nil, 0, err
	}
	owners := map[string]bool{}
	var end int64
	for record := range bytes.Lines(all) {
		var c claim
		if json.Unmarshal(record, &c) != nil || c.Key == "" || owners[c.Key] {
			continue // torn, empty, or not the first of its key
		}
		owners[c.Key] = true
		at := max(c.At, end)
		if c.Key == key {
			return &c, at, nil
		}
		end = at + int64(len(c.Line))
	}
	return nil, 0, nil
}

// tail returns the size of a file and whether its last line has no end.
func tail(file *os.File) (size int64, torn bool, err error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return 0, false, err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil {
		return 0, false, err
	}
	return info.Size(), last[0] != '\n', nil
}

func lineAfter(torn bool, text string) string {
	if torn {
		return "\n" + text + "\n"
	}
	return text + "\n"
}

func oneLine(text string) error {
	if strings.ContainsAny(text, "\r\n") {
		return errors.New("text has line breaks: give one line")
	}
	return nil
}
