// Package remote holds what the adapters of models behind HTTP do alike: they bound
// answers, keep secrets out of messages, and read errors and results in the same way.
package remote

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Refuse returns an error of that class.
func Refuse(class llm.ErrorClass, format string, args ...any) *llm.Error {
	return &llm.Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// Address reads the address of a server from the setting of that name. The text is not
// repeated in errors, which are kept in journals: it may hold a password, or a token as
// user or in its path.
func Address(setting, text, example string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(text, "/"))
	switch {
	case err != nil:
		return nil, Refuse(llm.ClassInvalid, "%s is not a URL; it looks like %s", setting, example)
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, Refuse(llm.ClassInvalid, "%s must start with http:// or https:// and a host, for example %s", setting, example)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, Refuse(llm.ClassInvalid, "%s must have no ? and no #, for example %s", setting, example)
	}
	return base, nil
}

// Masks takes secrets out of messages.
type Masks struct{ replacer *strings.Replacer }

// NewMasks hides the key, and what stands before the host and in the path of the
// address (apart from a last /v1), because some gateways expect a key there.
func NewMasks(key string, base *url.URL) Masks {
	var pairs []string
	hide := func(secret, instead string) {
		if secret != "" && secret != "/" {
			pairs = append(pairs, secret, instead)
		}
	}
	hide(key, "[key]")
	if base.User != nil {
		hide(base.User.String()+"@", "…@")
		hide(base.User.Username()+":***@", "…@") // as net/http writes it
	}
	for _, path := range []string{base.EscapedPath(), base.Path} {
		path = strings.TrimSuffix(path, "/v1")
		hide(path, "/…")
		for segment := range strings.SplitSeq(path, "/") {
			if len(segment) >= shortestToken {
				hide(segment, "…")
			}
		}
	}
	return Masks{strings.NewReplacer(pairs...)}
}

// shortestToken is the length in bytes from which a segment of a path may be a secret
// token, which a server may quote by itself.
const shortestToken = 16

// maxMessage is how much of a server's words an error repeats, in bytes.
const maxMessage = 2 << 10

// Clean takes secrets out of a message and cuts it to a sane length: servers quote what
// they refuse, and network errors name the address.
func (m Masks) Clean(message string) string {
	message = m.replacer.Replace(message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
