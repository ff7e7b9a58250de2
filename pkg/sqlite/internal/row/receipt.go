package row

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Receipt names a message and one receipt of it.
type Receipt struct {
	Dead     bool  // it was received from the dead letters
	Message  int64 // its number
	Receives int64 // how often it had been received then
}

// String is how the receipt is written in a delivery.
func (r Receipt) String() string {
	line := "m"
	if r.Dead {
		line = "d"
	}
	return line + strconv.FormatInt(r.Message, 36) + "." + strconv.FormatInt(r.Receives, 36)
}

// ErrReceipt is returned for a text that is no receipt.
var ErrReceipt = errors.New("the receipt is not one of ours")

// ParseReceipt reads what [Receipt.String] wrote.
func ParseReceipt(text string) (Receipt, error) {
	message, receives, ok := strings.Cut(text, ".")
	if !ok || len(message) < 2 || message[0] != 'm' && message[0] != 'd' {
		return Receipt{}, fmt.Errorf("%w: %q", ErrReceipt, text)
	}
	r := Receipt{Dead: message[0] == 'd'}
	var err1, err2 error
	r.Message, err1 = strconv.ParseInt(message[1:], 36, 64)
	r.Receives, err2 = strconv.ParseInt(receives, 36, 64)
	if err1 != nil || err2 != nil {
		return Receipt{}, fmt.Errorf("%w: %q", ErrReceipt, text)
	}
	return r, nil
}
