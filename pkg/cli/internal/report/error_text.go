package report

import (
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/store"
)

// errorText is what an error says to a person. Of a store that cannot be used it is what is
// wrong with it and what to do: through which calls the error came says nothing to them.
func errorText(where *place.Place, err error) string {
	text := err.Error()
	unusable := []client.Code{client.CodeStoreUnavailable, client.CodeStoreLocked, client.CodeStoreGone}
	line, said := unavailable(text)
	if !said || !slices.Contains(unusable, exit.CodeOf(err)) {
		return text
	}
	if file := where.DataPath(); !where.Remote() && !strings.Contains(line, file) {
		line = file + ": " + line
	}
	return line
}

// unavailable returns what follows the first words of a port that say so.
func unavailable(text string) (line string, said bool) {
	words := []string{store.ErrUnavailable.Error() + ": ", queue.ErrUnavailable.Error() + ": "}
	for part := range strings.Lines(text) {
		line = strings.TrimRight(part, "\n")
		for again := true; again; {
			again = false
			for _, word := range words {
				if _, after, found := strings.Cut(line, word); found {
					line, said, again = after, true, true
				}
			}
		}
		if said {
			if strings.Count(line, "(") > strings.Count(line, ")") {
				line += ")" // the other lines were in there too
			}
			return line, true
		}
	}
	return "", false
}
