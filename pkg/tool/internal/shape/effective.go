package shape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Effective compares arguments, decoded with their numbers as they are written, with the value that
// encoding/json has read them into, and changes them to what that value has: a property that Go
// has no field for is taken out, and a null that Go cannot keep becomes what it was read as. What
// cannot be told so is a problem: the tool would get another value than the one that is shown.
//
// What reads itself (json.Unmarshaler) decides what it makes of its JSON, and is left as it is.
func (s *Shape) Effective(doc any, in reflect.Value) (effective any, changed bool, problems []Problem) {
	var c comparison
	c.at = c.room[:0]
	effective = c.value(s, in, doc)
	slices.SortFunc(c.problems, func(a, b Problem) int { return slices.Compare(a.At, b.At) })
	return effective, c.changed, c.problems
}

type comparison struct {
	at       []string // of the value that is looked at
	room     [8]string
	changed  bool
	problems []Problem
}

// differs says that the tool would get another value.
func (c *comparison) differs(format string, args ...any) {
	c.problems = append(c.problems, Problem{At: slices.Clone(c.at), Message: fmt.Sprintf(format, args...)})
}

// differsAt is differs for what has a name in the value.
func (c *comparison) differsAt(name, text string) {
	c.problems = append(c.problems, Problem{At: below(c.at, name), Message: text})
}

// below returns the document of what has a name in the value.
func (c *comparison) below(name string, s *Shape, v reflect.Value, doc any) any {
	c.at = append(c.at, name)
	doc = c.value(s, v, doc)
	c.at = c.at[:len(c.at)-1]
	return doc
}

// value returns the document of one value as it is to be.
func (c *comparison) value(s *Shape, v reflect.Value, doc any) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			if doc != nil {
				c.differs("the tool would get null")
			}
			return doc
		}
		v = v.Elem()
	}
	if readsItself(v.Type()) {
		return doc
	}
	if doc == nil {
		return c.null(v)
	}
	switch v.Kind() {
	case reflect.Struct:
		if object, ok := doc.(map[string]any); ok {
			c.fields(s, v, object)
			return doc
		}
	case reflect.Map:
		if object, ok := doc.(map[string]any); ok {
			c.keys(s, v, object)
			return doc
		}
	case reflect.Slice, reflect.Array:
		if _, text := doc.(string); text && v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return doc // base64
		}
		if list, ok := doc.([]any); ok && len(list) == v.Len() {
			for i, item := range list {
				list[i] = c.below(strconv.Itoa(i), s.of(), v.Index(i), item)
			}
			return doc
		}
		c.differs("the tool would get a list of %d", v.Len())
		return doc
	case reflect.String:
		number, isNumber := doc.(json.Number) // of a field of that type
		text, isText := doc.(string)
		if isText && text == v.String() || isNumber && number.String() == v.String() {
			return doc
		}
	case reflect.Bool:
		if doc == v.Bool() {
			return doc
		}
	default:
		written, ok := doc.(json.Number)
		if n, err := strconv.ParseInt(written.String(), 10, 64); err == nil && v.CanInt() && v.Int() == n {
			return doc
		}
		if got := number(v); ok && got != "" {
			if !sameNumber(written.String(), got) {
				c.differs("this number cannot be kept as it is written: the tool would get %s", got)
			}
			return doc
		}
	}
	c.differs("the tool would get another value")
	return doc
}

// of returns the shape of the items of a list.
func (s *Shape) of() *Shape {
	if s == nil {
		return nil
	}
	return s.items
}

// null returns what stands for a null: itself, where Go has one, or what it was read as.
func (c *comparison) null(v reflect.Value) any {
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil() {
		return nil
	}
	raw, err := json.Marshal(v.Interface())
	var doc any
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		err = decoder.Decode(&doc)
	}
	if err != nil {
		c.differs("null cannot be read here")
		return nil
	}
	c.changed = true
	return doc
}

func (c *comparison) fields(s *Shape, v reflect.Value, doc map[string]any) {
	for name, value := range doc {
		var f field
		known := false
		if s != nil {
			f, known = s.fields[name]
		}
		if !known {
			delete(doc, name)
			c.changed = true
			continue
		}
		in, err := v.FieldByIndexErr(f.index)
		if err != nil { // in an embedded struct that is not there
			c.differsAt(name, "the tool would not get this")
			continue
		}
		c.put(doc, name, c.below(name, f.shape, in, value))
	}
}

// put changes a property, where it is another one than before.
func (c *comparison) put(doc map[string]any, name string, value any) {
	if was, null := doc[name], value == nil; was == nil && !null {
		doc[name] = value
	}
}

func (c *comparison) keys(s *Shape, v reflect.Value, doc map[string]any) {
	of := v.Type().Key()
	if of.Kind() != reflect.String && readsItself(of) {
		return // what becomes of its names, it says itself
	}
	if v.Len() != len(doc) {
		c.differs("two of these names are the same to the tool")
		return
	}
	var values *Shape
	if s != nil {
		values = s.values
	}
	for name, value := range doc {
		key, ok := keyOf(of, name)
		in := reflect.Value{}
		if ok {
			in = v.MapIndex(key)
		}
		if !in.IsValid() {
			c.differsAt(name, "the tool would get another name")
			continue
		}
		c.put(doc, name, c.below(name, values, in, value))
	}
}

// keyOf returns the key that a name is read as, if it is written as Go writes that key.
func keyOf(of reflect.Type, name string) (key reflect.Value, ok bool) {
	key = reflect.New(of).Elem()
	switch {
	case key.Kind() == reflect.String:
		key.SetString(name)
		return key, true
	case key.CanInt():
		n, err := strconv.ParseInt(name, 10, 64)
		key.SetInt(n)
		return key, err == nil && strconv.FormatInt(key.Int(), 10) == name
	case key.CanUint():
		n, err := strconv.ParseUint(name, 10, 64)
		key.SetUint(n)
		return key, err == nil && strconv.FormatUint(key.Uint(), 10) == name
	}
	return key, false
}

// number returns a number as Go has it; "" for what is none.
func number(v reflect.Value) string {
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	}
	return ""
}

// sameNumber reports whether two numbers of JSON are the same in decimal.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	aDigits, aExponent := decimal(a)
	bDigits, bExponent := decimal(b)
	return aDigits == bDigits && aExponent == bExponent
}

// decimal returns the significant digits of a number, with its sign, and the exponent of a point
// before the first of them. Of zero it returns nothing.
func decimal(number string) (digits string, exponent int) {
	mantissa, e, _ := strings.Cut(strings.ToLower(number), "e")
	exponent, _ = strconv.Atoi(e) // no exponent is zero; a scan has refused what is too large
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent += len(whole)
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(whole) + len(fraction) - len(digits)
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return "", 0
	}
	if negative {
		digits = "-" + digits
	}
	return digits, exponent
}
