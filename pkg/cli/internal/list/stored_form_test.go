package list

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// fill sets every field to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(0).Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"n":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), element)
	case reflect.String:
		v.SetString("text" + string(rune('a'+*n%26)))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	default:
		panic(v.Kind())
	}
}

// TestStoredForm: a wait loses nothing on its way through the API that a list prints.
func TestStoredForm(t *testing.T) {
	t.Parallel()
	var record journal.WaitRecord
	n := 0
	fill(reflect.ValueOf(&record).Elem(), &n)
	// These are the sweep's, the journal's and the server's own.
	record.TakenBy, record.Due, record.Audit, record.Wait.Needs, record.HeldLast, record.Root = 0, nil, journal.AuditTip{}, nil, false, ""
	w := wire.NewWait("s", record)
	require.Equal(t, "s", w.SessionID)
	require.Equal(t, record, records([]client.Wait{w})[0])
	require.Equal(t, record.Wait, opened(w))
}
