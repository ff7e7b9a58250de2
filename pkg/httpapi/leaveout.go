package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// What is left out of an answer that cannot be sent: every value over mostKept
// bytes; if that is not enough every one over a quarter of it, down to leastKept.
const (
	mostKept  = 1 << 20
	leastKept = 4 << 10
)

// fitted returns the JSON of an answer's body, without its largest values if it
// cannot be sent with them: a reader must get past every item, however large.
func (h *handler) fitted(r *http.Request, body any) ([]byte, error) {
	raw, err := encode(body)
	if err != nil || h.cfg.Fits == nil || h.cfg.Fits(r, raw) {
		return raw, err
	}
	// A copy, for the values may be shared with what they were read from.
	reduced := reflect.New(reflect.TypeOf(body))
	if err := json.Unmarshal(raw, reduced.Interface()); err != nil {
		return nil, err
	}
	for most := mostKept; most >= leastKept; most /= 4 {
		(&omission{most: most}).walk(reduced.Elem(), "")
		if raw, err = encode(reduced.Interface()); err != nil || h.cfg.Fits(r, raw) {
			break
		}
	}
	return raw, err
}

// omission leaves values over most bytes out and says so in the nearest LeftOut around them.
type omission struct {
	most int
	list *[]client.LeftOut
}

// walk goes through the value of an answer. At is its place, a JSON pointer from
// the object that has the list.
func (o *omission) walk(v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			o.walk(v.Elem(), at)
		}
	case reflect.Struct:
		o.fields(v, at)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			o.bytes(v, at)
			return
		}
		for i := range v.Len() {
			o.walk(v.Index(i), at+"/"+strconv.Itoa(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			kept := reflect.New(value.Type()).Elem() // a map's own value cannot be set
			kept.Set(value)
			o.walk(kept, at+"/"+pointerEscapes.Replace(key.String()))
			v.SetMapIndex(key, kept)
		}
	case reflect.String:
		if text := v.String(); len(text) > o.most {
			v.SetString(o.leave(at, len(text), hash([]byte(text))))
		}
	default: // a number or a truth is small
	}
}

// pointerEscapes are those of RFC 6901.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (o *omission) fields(v reflect.Value, at string) {
	if list := v.FieldByName("LeftOut"); list.IsValid() {
		if own, is := list.Addr().Interface().(*[]client.LeftOut); is {
			o, at = &omission{most: o.most, list: own}, ""
		}
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); field.IsExported() && name != "-" && name != "" {
			o.walk(v.Field(i), at+"/"+name)
		}
	}
}

func (o *omission) bytes(v reflect.Value, at string) {
	raw := v.Bytes()
	if len(raw) <= o.most {
		return
	}
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes([]byte(strconv.Quote(o.leave(at, len(raw), journal.Digest(raw)))))
		return
	}
	v.SetBytes([]byte(o.leave(at, len(raw), hash(raw))))
}

// leave records that a value is left out and returns what stands in its place.
func (o *omission) leave(at string, size int, digest string) string {
	if o.list != nil {
		*o.list = append(*o.list, client.LeftOut{At: at, Bytes: int64(size), Digest: digest})
	}
	return fmt.Sprintf("[left out: %d bytes, digest %s]", size, digest)
}

// hash is the digest of what is not JSON.
func hash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
