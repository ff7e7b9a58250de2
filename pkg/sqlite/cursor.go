package sqlite

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/adjourn/adjourn/pkg/store"
)

// position is where a page ends, in the columns its kind is ordered by.
type position [3]int64

// cursor returns the opaque name of a position. It holds a check sum over the
// search as well: a cursor of another search is not one of this.
func cursor(p *store.FindParams, at position) string {
	text := fmt.Sprintf("%d.%d.%d", at[0], at[1], at[2])
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s.%08x", text, searchSum(p, text)))
}

func searchSum(p *store.FindParams, text string) uint32 {
	return crc32.ChecksumIEEE([]byte(p.Selection() + "|" + text))
}

func parseCursor(p *store.FindParams) (position, error) {
	switch p.Kind {
	case store.FindSessions:
		if p.Cursor == "" {
			return position{math.MaxInt64, math.MaxInt64}, nil
		}
	case store.FindWaits, store.FindDue, store.FindAhead:
		if p.Cursor == "" {
			return position{math.MinInt64}, nil
		}
	default:
		return position{}, fmt.Errorf("unknown kind of search %q", p.Kind)
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return position{}, fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	var at position
	var sum uint32
	if _, err := fmt.Sscanf(string(raw), "%d.%d.%d.%08x", &at[0], &at[1], &at[2], &sum); err != nil || cursor(p, at) != p.Cursor {
		return position{}, fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	return at, nil
}
