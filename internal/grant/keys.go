package grant

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MinKey is how many bytes a key has at least.
const MinKey = 32

// maxKeys is more than a rotation needs.
const maxKeys = 8

// ErrKeys says that a text does not hold keys. It never repeats the text.
var ErrKeys = errors.New("no keys of links")

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,16}$`)

// Keys sign and verify tokens: the first signs, all verify. The zero value has none.
type Keys struct{ all []key }

type key struct {
	id     string
	secret []byte
}

// IsZero reports whether there are no keys, so that nothing can be signed or read.
func (k Keys) IsZero() bool { return len(k.all) == 0 }

// ParseKeys reads keys from a text: id:base64, several with commas between. An empty text holds none.
func ParseKeys(text string) (Keys, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Keys{}, nil
	}
	var out Keys
	for i, part := range strings.Split(text, ",") {
		id, encoded, found := strings.Cut(strings.TrimSpace(part), ":")
		fault := func(what string) error { return fmt.Errorf("%w: key %d: %s", ErrKeys, i+1, what) }
		if !found || !keyID.MatchString(id) {
			return Keys{}, fault("write it as id:base64, the id with 1 to 16 letters, digits, _ or -")
		}
		secret, err := decode(encoded)
		switch {
		case err != nil:
			return Keys{}, fault("what follows the id is not base64")
		case len(secret) < MinKey:
			return Keys{}, fault(fmt.Sprintf("it has %d bytes, and %d are the least", len(secret), MinKey))
		case out.secretOf(id) != nil:
			return Keys{}, fault("its id is there twice")
		case len(out.all) == maxKeys:
			return Keys{}, fault(fmt.Sprintf("%d are the most", maxKeys))
		}
		for _, other := range out.all {
			if subtle.ConstantTimeCompare(other.secret, secret) == 1 {
				return Keys{}, fault("it is there twice, under two ids")
			}
		}
		out.all = append(out.all, key{id, secret})
	}
	return out, nil
}

// FormatKey returns a key as [ParseKeys] reads it.
func FormatKey(id string, secret []byte) string {
	return id + ":" + base64.StdEncoding.EncodeToString(secret)
}

// decode takes both alphabets of base64, with or without padding.
func decode(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "-_") {
		return base64.RawURLEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// secretOf returns the key of an id, nil if there is none.
func (k Keys) secretOf(id string) []byte {
	for _, one := range k.all {
		if one.id == id {
			return one.secret
		}
	}
	return nil
}
