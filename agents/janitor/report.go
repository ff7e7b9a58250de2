package janitor

import (
	"fmt"
	"strings"

	"github.com/adjourn/adjourn/pkg/agent"
)

// maxLines is how many files a list in a text names.
const maxLines = 20

const help = "I find copies of files and delete them, each only after you said yes. Nothing was done: " +
	"send me the path of one folder, for example ./photos (a path with spaces in quotes)."

// foldersIn returns the one path a message names, none if it names none or
// several. A message that begins with a path is ambiguous, for paths may have
// spaces: then the whole of it comes first and its path-like word second.
func foldersIn(message string) []string {
	message = strings.TrimSpace(message)
	if quoted := quotedIn(message); len(quoted) > 0 {
		if len(quoted) > 1 {
			return nil
		}
		return quoted
	}
	words := strings.Fields(message)
	if len(words) == 1 {
		return words
	}
	var paths []string
	if looksLikePath(words, 0) && !strings.Contains(message, "\n") {
		paths = append(paths, message)
	}
	found := 0
	for i := range words {
		if looksLikePath(words, i) {
			paths = append(paths, trim(words[i]))
			found++
		}
	}
	if found > 1 {
		return paths[:len(paths)-found]
	}
	return paths
}

func looksLikePath(words []string, i int) bool {
	return i < len(words) && (strings.ContainsAny(words[i], `/\`) || words[i] == "." || words[i] == "..")
}

// trim takes off what belongs to the sentence around a path.
func trim(word string) string {
	word = strings.TrimLeft(word, "(<[")
	cut := strings.TrimRight(word, ",;:!?)>]")
	if dot := strings.TrimSuffix(cut, "."); dot != "" && dot != cut && !strings.HasSuffix(dot, ".") && !strings.HasSuffix(dot, "/") {
		cut = dot
	}
	return cut
}

// quotedIn returns the quoted parts of a text. An apostrophe inside a word is
// no quote.
func quotedIn(text string) []string {
	var out []string
	for text != "" {
		begin := strings.IndexAny(text, "\"'`")
		if begin < 0 {
			return out
		}
		quote := text[begin]
		if begin > 0 && quote == '\'' && text[begin-1] != ' ' && text[begin-1] != '\n' {
			text = text[begin+1:]
			continue
		}
		end := strings.IndexByte(text[begin+1:], quote)
		if end < 0 {
			return out
		}
		if inside := strings.TrimSpace(text[begin+1 : begin+1+end]); inside != "" {
			out = append(out, inside)
		}
		text = text[begin+end+2:]
	}
	return out
}

// offer is said beside the calls that wait for a person.
func offer(now []DeleteIn, later int) string {
	var bytes int64
	for _, d := range now {
		bytes += d.Size
	}
	text := fmt.Sprintf("I found %s in %s, %s in all. May I delete them? Of each content one file stays.", count(len(now), "copy", "copies"), now[0].Folder, size(bytes))
	if later > 0 {
		text += fmt.Sprintf(" After these I will ask about %d more.", later)
	}
	return text
}

// summary says what became of everything; found is how many copies there were.
func (j *job) summary(found int) string {
	var freed int64
	var deleted, denied, cancelled, refused, unknown []string
	for _, o := range j.outcomes {
		if o.status != agent.ResultSuccess && j.gone[o.asked] {
			continue // another call deleted it: what it was asked as well says nothing
		}
		line := o.asked + ": " + strings.TrimPrefix(o.text, o.asked+": ")
		switch o.status {
		case agent.ResultSuccess:
			freed += o.done.Freed
			line = fmt.Sprintf("%s (same as %s)", o.done.Deleted, o.done.Kept)
			if o.done.Deleted != o.asked {
				line += ", which you named instead of " + o.asked
			}
			deleted = append(deleted, line)
		case agent.ResultDenied:
			denied = append(denied, line)
		case agent.ResultCancelled:
			cancelled = append(cancelled, line)
		case agent.ResultError:
			refused = append(refused, line)
		case agent.ResultUnknown, agent.ResultTimedOut:
			unknown = append(unknown, line)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: looked at %s", j.listing.Folder, count(j.listing.Scanned, "file", "files"))
	if found == 0 {
		b.WriteString(", found no copies to delete.\n")
	} else {
		fmt.Fprintf(&b, ", found %s. Deleted %d, freed %s.\n", count(found, "copy", "copies"), len(deleted), size(freed))
	}
	section(&b, "Deleted", deleted)
	section(&b, "Kept, because you did not approve", denied)
	section(&b, "Not deleted, because it was cancelled before", cancelled)
	section(&b, "Not deleted", refused)
	section(&b, "Unknown; please look whether the file, or the one you named instead, is still there, under its name or beside it as "+
		asidePrefix+"…", unknown)
	section(&b, "Moved aside by a deletion that was stopped half-way, and still there; to get a file back, rename it; if you do not want it, delete it",
		j.leftovers())
	section(&b, "Could not be read", j.unread())
	section(&b, "Not copies but second names of one file (hard links), left alone", j.links())
	if note := j.leftOut(); note != "" {
		fmt.Fprintf(&b, "Left out: %s.\n", note)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for _, line := range first(lines, maxLines) {
		// A file's name may hold a line break, and must not begin a line of the summary.
		fmt.Fprintf(b, "  %s\n", strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(line))
	}
	if more := len(lines) - maxLines; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}

func (j *job) unread() []string {
	var lines []string
	for _, s := range j.listing.Skipped {
		lines = append(lines, s.Path+": "+s.Reason)
	}
	for _, f := range j.listing.Files {
		if reason, failed := j.unreadable[f.Path]; failed {
			lines = append(lines, f.Path+": "+strings.TrimPrefix(reason, f.Path+": "))
		}
	}
	return lines
}

func (j *job) leftovers() []string {
	var lines []string
	for _, l := range j.listing.Leftovers {
		line := fmt.Sprintf("%s (%s", l.Path, size(l.Size))
		if l.Was != "" {
			line += ", it was " + l.Was
		}
		lines = append(lines, line+")")
	}
	return lines
}

func (j *job) links() []string {
	var lines []string
	for _, l := range j.listing.HardLinks {
		lines = append(lines, fmt.Sprintf("%s (same file as %s)", l.Path, l.SameAs))
	}
	return lines
}

func (j *job) leftOut() string {
	var notes []string
	note := func(n int, one, many string) {
		if n > 0 {
			notes = append(notes, count(n, one, many))
		}
	}
	note(j.listing.Empty, "empty file", "empty files")
	note(j.listing.Hidden, "hidden entry", "hidden entries")
	note(j.listing.Symlinks, "symlink", "symlinks")
	return strings.Join(notes, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size says bytes exactly, and in a larger unit where that helps.
func size(bytes int64) string {
	const kilo = 1000
	exact := fmt.Sprintf("%d bytes", bytes)
	if bytes == 1 {
		exact = "1 byte"
	}
	if bytes < 10*kilo {
		return exact
	}
	value, unit := float64(bytes)/kilo, 0
	units := []string{"kB", "MB", "GB", "TB", "PB"}
	for value >= kilo && unit < len(units)-1 {
		value, unit = value/kilo, unit+1
	}
	return fmt.Sprintf("%s (%.1f %s)", exact, value, units[unit])
}
