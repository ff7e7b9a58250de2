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

// patience is how long a writer waits for another one that holds the file. A
// frozen process may hold it for ever, so what comes after must be safe
// without: see appendLine and appendOnce.
const patience = 2 * time.Second

// appendLine adds one line to a file and syncs it. The line goes out in one
// write at the end of the file, so that writers do not mix their lines; a last
// line that was torn, by a crash of whoever wrote it, is ended first.
func appendLine(ctx context.Context, root *os.Root, path, text string) error {
	if err := oneLine(text); err != nil {
		return err
	}
	file, err := openFile(root, path, os.O_APPEND)
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
	size, torn, err := tail(file)
	if err != nil {
		return err
	}
	line := lineAfter(torn, text)
	if err := fits(file, size+int64(len(line))); err != nil {
		return err
	}
	if _, err := file.WriteString(line); err != nil {
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

// possible reports whether stake could have written the claim. Anybody may write
// into the file of the claims, as into any other of the lab's.
func (c claim) possible() bool {
	line := strings.TrimPrefix(c.Line, "\n")
	return c.At >= 0 && c.At <= maxFile && strings.HasSuffix(line, "\n") && strings.Count(line, "\n") == 1
}

// claimsOf names the file beside path that remembers the keys.
func claimsOf(path string) string { return path + ".keys" }

// appendOnce adds one line to a file unless one was added for this key.
//
// A process that first looks for the line and then appends it would write it twice if
// it died or was frozen in between. So a key first claims a place: a record is added to
// the file beside, and of several records of one key the first counts. All processes
// read the same records, so each writes the same bytes to the same place, however
// often. The lock is for those who append to path by other means.
func appendOnce(ctx context.Context, root *os.Root, path, key, text string) (err error) {
	if err := oneLine(text); err != nil {
		return err
	}
	file, err := openFile(root, path, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	claims, err := openFile(root, claimsOf(path), os.O_APPEND)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claims.Close()) }()
	unlock, err := lock(ctx, file)
	if err != nil {
		return err
	}
	defer unlock()

	lines, err := claimed(claims, key)
	if err != nil {
		return err
	}
	if lines == nil {
		if lines, err = stake(file, claims, key, text); err != nil {
			return err
		}
	}
	return put(file, claims, lines)
}

// placed is a claimed line with its place.
type placed struct {
	line string
	at   int64
}

// claimed reads the claims and returns the lines up to that of key, nil if key
// has none. A line goes where its claim wanted, but never before the end of
// those that were claimed earlier.
func claimed(claims *os.File, key string) ([]placed, error) {
	all, err := io.ReadAll(io.NewSectionReader(claims, 0, maxFile+1))
	if err != nil {
		return nil, err
	}
	if err := fits(claims, int64(len(all))); err != nil {
		return nil, err
	}
	var lines []placed
	var end int64
	owners := map[string]bool{}
	for record := range bytes.Lines(all) {
		var c claim
		if json.Unmarshal(record, &c) != nil || c.Key == "" || owners[c.Key] || !c.possible() {
			continue // torn, empty, not the first of its key, or not ours
		}
		owners[c.Key] = true
		lines = append(lines, placed{c.Line, max(c.At, end)})
		end = lines[len(lines)-1].at + int64(len(c.Line))
		if c.Key == key {
			return lines, nil
		}
	}
	return nil, nil
}

// stake adds a claim and returns the lines up to the one that counts, which may
// be another process's.
func stake(file, claims *os.File, key, text string) ([]placed, error) {
	size, torn, err := tail(file)
	if err != nil {
		return nil, err
	}
	record, err := json.Marshal(claim{Key: key, At: size, Line: lineAfter(torn, text)})
	if err != nil {
		return nil, err
	}
	held, _, err := tail(claims)
	if err == nil {
		err = errors.Join(fits(file, size+int64(len(text))+2), fits(claims, held+int64(len(record))+2))
	}
	if err != nil {
		return nil, err
	}
	// The newline in front ends a record that was torn.
	if _, err := fmt.Fprintf(claims, "\n%s\n", record); err != nil {
		return nil, err
	}
	lines, err := claimed(claims, key)
	if err == nil && lines == nil {
		err = fmt.Errorf("%s: the claim just written is not there", claims.Name())
	}
	return lines, err
}

// put writes the last of the lines to its place, and those before it that the
// file does not have: their writers died, or have not come to it yet.
//
// The end of the line comes first, so that those who append come after it from
// now on; the claim must be on the disk before the line may be, else a power
// failure could leave a line that nobody claims.
func put(file, claims *os.File, lines []placed) error {
	size, _, err := tail(file)
	if err != nil {
		return err
	}
	mine := lines[len(lines)-1]
	if err := fits(file, mine.at+int64(len(mine.line))); err != nil {
		return err
	}
	if _, err := file.WriteAt([]byte("\n"), mine.at+int64(len(mine.line))-1); err != nil {
		return err
	}
	if err := claims.Sync(); err != nil {
		return err
	}
	for _, l := range lines {
		if l != mine && l.at+int64(len(l.line)) <= size {
			continue
		}
		if _, err := file.WriteAt([]byte(l.line), l.at); err != nil {
			return err
		}
	}
	return file.Sync()
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
