package dynamostore

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"unicode/utf8"

	"github.com/adjourn/adjourn/pkg/store"
)

// A position is the sort key of what a page ended with: the next one begins
// after it, whatever has moved meanwhile.

const (
	sumLength = 8
	// maxPosition is longer than any position: DynamoDB takes 1,024 bytes of sort key.
	maxPosition = 1024
)

// cursor returns the opaque name of a position. It holds a check sum over the
// search as well: a cursor of another search is not one of this.
func cursor(p *store.FindParams, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(searchSum(p, position) + position))
}

func searchSum(p *store.FindParams, position string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(p.Selection()+"|"+position)))
}

// parseCursor returns the position a cursor names, empty for the first page.
func parseCursor(p *store.FindParams) (string, error) {
	if p.Cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || len(raw) <= sumLength {
		return "", fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	position := string(raw[sumLength:])
	// The checksum is no secret: a caller can compute one for a position that does not exist.
	none := len(position) >= maxPosition || !utf8.ValidString(position)
	if none || cursor(p, position) != p.Cursor {
		return "", fmt.Errorf("%w: %q", store.ErrInvalidCursor, p.Cursor)
	}
	return position, nil
}
