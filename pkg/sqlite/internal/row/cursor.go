package row

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/adjourn/adjourn/pkg/store"
)

// Position is where a page ends, in the columns its kind is ordered by.
type Position [3]int64

// Cursor returns the opaque name of a position. It holds a check sum over the
// search as well: a cursor of another search is not one of this.
func Cursor(p *store.FindParams, at Position) string {
	text := fmt.Sprintf("%d.%d.%d", at[0], at[1], at[2])
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s.%08x", text, searchSum(p, text)))
}

func searchSum(p *store.FindParams, text string) uint32 {
	return crc32.ChecksumIEEE([]byte(p.Selection() + "|" + text))
}

// ParseCursor returns the position where the page of a search begins.
func ParseCursor(p *store.FindParams) (Position, error) {
	switch p.Kind {
	case store.FindSessions:
		if p.Cursor == "" {
			return Position{math.MaxInt64, math.MaxInt64}, nil
		}
	case store.FindWaits, store.FindDue, store.FindAhead:
		if p.Cursor == "" {
			return Position{math.MinInt64}, nil
		}
	default:
		return Position{}, fmt.Errorf("unknown kind of search %q", p.Kind)
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return Position{}, fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	var at Position
	var sum uint32
	if _, err := fmt.Sscanf(string(raw), "%d.%d.%d.%08x", &at[0], &at[1], &at[2], &sum); err != nil || Cursor(p, at) != p.Cursor {
		return Position{}, fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	return at, nil
}
