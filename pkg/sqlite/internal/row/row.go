// Package row encodes what package sqlite writes or gives out.
//
// It writes the rows of a data file, the cursors of its searches (find.go) and the receipts of
// received messages (receipt.go).
package row

import (
	"database/sql/driver"
	"math"
	"time"
)

// Values are the columns of a row that was read.
type Values []driver.Value

// Int returns an integer; 0 for NULL.
func (v Values) Int(column int) int64 {
	n, _ := v[column].(int64)
	return n
}

// Text returns a text; "" for NULL.
func (v Values) Text(column int) string {
	switch v := v[column].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// Bytes returns a text or a blob; nil for NULL.
func (v Values) Bytes(column int) []byte {
	switch v := v[column].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

// The first and the last time that fit into nanoseconds since 1970, in 1677 and in
// 2262. What is earlier or later is kept as they are: so it sorts first or last,
// but before never, and a search for what is due by some time does not find it early.
const (
	earliest = math.MinInt64
	latest   = math.MaxInt64 - 1
)

// Nanos is how times are kept; 0 is the zero time.
func Nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(Time(earliest)):
		return earliest
	case t.After(Time(latest)):
		return latest
	}
	return t.UnixNano()
}

// Bound is a time as a search compares others with it: none is as late as the latest.
func Bound(t time.Time) int64 { return min(Nanos(t), latest-1) }

func nanosOrNull(t *time.Time) driver.Value {
	if t == nil {
		return nil
	}
	return Nanos(*t)
}

// Time returns the time that is kept so.
func Time(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
