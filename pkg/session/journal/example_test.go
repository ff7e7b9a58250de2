package journal_test

import (
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// An adapter stores what Encode returns and hands out what Decode reads of it.
func Example() {
	entry := journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindStarted, Status: session.StatusRunning, Token: "t"}
	stored, err := journal.Encode(&entry)
	if err != nil {
		fmt.Println(err)
		return
	}
	read, err := journal.Decode(stored)
	fmt.Println(read.Seq, read.Kind, read.Hash == entry.Hash, err)
	// Output: 1 started true <nil>
}
