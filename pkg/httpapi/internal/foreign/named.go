package foreign

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
)

// maxNamed is of how many waits it is recorded that a body which names them was refused.
const maxNamed = 8

// waitName is the id of a wait, or an approvalId, which begins with one.
var waitName = regexp.MustCompile(`^(w[0-9]{1,18}-[0-9]{1,9})(_[A-Za-z0-9_-]*)?$`)

// Named returns the ids of the waits that a body names in whatever form, each once; none of a body that is not
// JSON. The session need not have them.
func Named(body []byte) []string {
	if !json.Valid(body) {
		return nil
	}
	var named []string
	for decoder := json.NewDecoder(bytes.NewReader(body)); len(named) < maxNamed; {
		token, err := decoder.Token()
		if err != nil {
			break // of JSON: its end
		}
		text, _ := token.(string)
		if wait := WaitIn(text); wait != "" && !slices.Contains(named, wait) {
			named = append(named, wait)
		}
	}
	return named
}

// WaitIn is the id of the wait that a text is, or the approvalId of; empty of any other text.
func WaitIn(text string) string {
	if found := waitName.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
