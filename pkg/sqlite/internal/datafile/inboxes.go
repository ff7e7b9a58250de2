package datafile

import (
	"fmt"
	"strings"
)

// Inbox is an index of the open waits by one field of their records.
type Inbox struct {
	Index string
	// Field is the SQL that reads the field. It is NULL where a text is no JSON, so that a record
	// that was damaged does not keep its row from being written.
	Field string
}

// The inboxes. Programs of before know nothing of them and keep them all the same, for SQLite writes
// the indexes of a file with its rows. So they need no new format of the file.
var (
	ByTool  = inboxBy("items_by_tool", "$.wait.tool")
	ByAgent = inboxBy("items_by_agent", "$.agent")
	ByKind  = inboxBy("items_by_kind", "$.wait.kind")
)

func inboxBy(index, path string) Inbox {
	return Inbox{Index: index, Field: "CASE WHEN json_valid(payload) THEN json_extract(payload, '" + path + "') END"}
}

// OpenWaits is the condition that a row of the table items is an open wait, in the words of the inboxes.
const OpenWaits = "items.kind='wait' AND items.tenant IS NOT NULL"

// inboxSchema makes the inboxes, in the order of the whole one.
func inboxSchema() string {
	var b strings.Builder
	for _, i := range []Inbox{ByTool, ByAgent, ByKind} {
		fmt.Fprintf(&b, "CREATE INDEX IF NOT EXISTS %s ON items (tenant, %s, deadline, opened) WHERE %s;\n",
			i.Index, i.Field, strings.ReplaceAll(OpenWaits, "items.", ""))
	}
	return b.String()
}

// Has reports whether the file has the index: one of before lacks it until [File.AddInboxes].
func (c *Conn) Has(i Inbox) (bool, error) {
	n, err := c.Number("SELECT count(*) FROM sqlite_schema WHERE type='index' AND name='" + i.Index + "'")
	return n > 0, err
}

// AddInboxes gives a file of before the inboxes, in a transaction of the connection that writes. It
// reads all items once.
func (f *File) AddInboxes() error { return f.writer.Script(inboxSchema()) }
