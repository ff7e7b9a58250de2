package prompt

import (
	"context"
	"fmt"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
)

// kept are the rows of a window that a page leaves to what stands below it: what it
// is about, told once more, and the prompt.
const kept = 4

// pages prints a text that may be longer than the window, page by page, so that
// nothing of it scrolls away unseen. It reports whether it was shown to its end, and
// whether that took more than one page.
func (p *Person) pages(ctx context.Context, text string) (whole, several bool, err error) {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1] // what follows the last one is nothing
	room := max(screen.Height(p.Screen.Stderr)-kept, 2)
	for at := 0; at < len(lines); {
		end, rows := at, 0
		for end < len(lines) && (end == at || rows+p.rows(lines[end]) <= room) {
			rows += p.rows(lines[end])
			end++
		}
		p.print(strings.Join(lines[at:end], ""))
		if at = end; at == len(lines) {
			return true, several, nil
		}
		several = true
		said, err := p.prompt(ctx, fmt.Sprintf("-- %d of %d lines: Enter for more, q for no more: ", at, len(lines)))
		if err != nil {
			return false, several, err
		}
		if strings.EqualFold(said, "q") {
			return false, several, nil
		}
	}
	return true, several, nil
}

// rows is how many rows of the window a line takes, too many rather than too few.
func (p *Person) rows(line string) int {
	width := p.width()
	if width <= 0 {
		return 1
	}
	return max(1, (screen.Columns(strings.TrimSuffix(line, "\n"))+width-1)/width)
}
