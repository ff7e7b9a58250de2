package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// scales are the sessions of a day that the page is about.
var scales = []float64{1e3, 1e5, 1e7}

// part is a line of the first table: what one part does at the peak.
type part struct {
	what string
	of   func(sessions float64) float64
	unit string
}

// units of the indexes that a session takes: of each of its six status moves two in
// that of sessions but the first, one for each wait that opens or closes in each of
// the four of the inbox, and the rest in what is due.
const (
	sessionsIndex = 2*(2+2*waitsEach) - 1
	inboxIndex    = 2 * waitsEach
	inboxes       = 4 // by deadline; of an agent, of a kind, of a tool
)

// dueIndex is what a session takes of the index of what is due.
func (n need) dueIndex() float64 { return n.IndexWrites - sessionsIndex - inboxes*inboxIndex }

func parts(n need) []part {
	return []part{
		{"steps", func(s float64) float64 { return perSecond(s, n.invocations) }, "/s"},
		{"step function: invocations at once", func(s float64) float64 { return perSecond(s, n.seconds) }, ""},
		{"minutes until a mapping has come up to them", func(s float64) float64 { return max(0, perSecond(s, n.seconds)-mappingFirst) / mappingRamp }, ""},
		{"queue: messages sent", func(s float64) float64 { return perSecond(s, n.Sends) }, "/s"},
		{"table: requests", func(s float64) float64 { return perSecond(s, n.Requests) }, "/s"},
		{"table and indexes: write units", func(s float64) float64 { return perSecond(s, n.Writes+n.IndexWrites) }, "/s"},
		{"table and indexes: read units", func(s float64) float64 { return perSecond(s, n.Reads) }, "/s"},
		{"one partition of `sessions`, huge tenant: write units", func(s float64) float64 { return perSecond(s*share, sessionsIndex) / listShards }, "/s"},
		{"one partition of `inbox`, huge tenant: write units", func(s float64) float64 { return perSecond(s*share, inboxIndex) / listShards }, "/s"},
		{"one partition of `inbox`, huge tenant: read units", func(s float64) float64 { return perSecond(s*share, waitsEach*looks*0.5) }, "/s"},
		{"one partition of `due`: write units", func(s float64) float64 { return perSecond(s, n.dueIndex()) / dueShards }, "/s"},
		{"API: requests", func(s float64) float64 { return perSecond(s, n.apiCalls) }, "/s"},
		{"sweep: running sessions it walks over", func(s float64) float64 { return perSecond(s, n.seconds) }, ""},
		{"sweep: seconds for them", walk(n), ""},
		{"stopped by an hour without a queue", func(s float64) float64 { return stopped(s) }, ""},
		{"sweep: minutes to send for all of them", func(s float64) float64 { return stopped(s) / resends }, ""},
		{"storage, growth a day", func(s float64) float64 { return s * n.Bytes / 1e9 }, " GB"},
	}
}

// resends is how many sessions the sweep sends for in a minute: HEAD, the newest
// entry, the stamp and the message, one after the other.
const resends = sweptAtOnce * float64(sweepTimeout-sweepMargin) / float64(4*request)

// stopped is how many sessions an hour at the peak leaves without a message: those
// that began in it or were answered.
func stopped(sessions float64) float64 { return sessions / 24 * peak * (1 + waitsEach) }

// walk is how long the sweep pages over what runs: 200 to a page, of a round of
// queries and two of reads.
func walk(n need) func(float64) float64 {
	return func(s float64) float64 { return perSecond(s, n.seconds) / 200 * 3 * request.Seconds() }
}

// limit is a line of the second table.
type limit struct {
	what  string
	value float64
	// of is how much of it is taken by one session a day.
	of     float64
	turn   string
	source string
}

func limits(n need) []limit {
	busy := perSecond(1, n.seconds)
	return []limit{
		{"`MaxConcurrency` as it is given", maxConcurrency, busy, "`MaxConcurrency`", "template.yaml"},
		{"a young account's concurrency", youngAccount, busy, "quota Concurrent executions (L-B99A9384)", "Lambda quotas"},
		{"`ThrottleRate` as it is given, requests/s", throttleRate, perSecond(1, n.apiCalls), "`ThrottleRate`, `ThrottleBurst`", "template.yaml"},
		{"an account's concurrency", accountConcurrency, busy, "quota Concurrent executions; it is raised to tens of thousands", "Lambda quotas"},
		{"the most that `MaxConcurrency` may say", mappingConcurrency, busy, "no parameter: several stacks, each with its tenants", "SQS event source, MaximumConcurrency"},
		{"sweep: an hour without a queue made good within an hour", 60 * resends, stopped(1), "`ApiMemory`: 2048 sends for eight times as many", "simulation, template.yaml"},
		{"sweep: 40 s to walk over what runs", (sweepTimeout - sweepMargin).Seconds(), walk(n)(1), "no parameter: several stacks", "template.yaml"},
		{"a new table's write units/s", newTableWrites, perSecond(1, n.Writes+n.IndexWrites), "nothing: it doubles what it has served; or warm throughput, set before", "DynamoDB on-demand capacity"},
		{"a new table's read units/s", newTableReads, perSecond(1, n.Reads-n.indexReads), "nothing: it doubles what it has served; or warm throughput, set before", "DynamoDB on-demand capacity"},
		{"a table's write units/s", tableWrites, perSecond(1, n.Writes), "quota Table-level write throughput; `MaxWriteUnits` where it is set", "DynamoDB quotas"},
		{"a table's read units/s", tableReads, perSecond(1, n.Reads-n.indexReads), "quota Table-level read throughput; `MaxReadUnits` where it is set", "DynamoDB quotas"},
		{"a partition of `sessions`, write units/s", partitionWrites, perSecond(share, sessionsIndex) / listShards, "nothing: more shards are a change of the program", "DynamoDB, partition key design"},
		{"a partition of `inbox`, write units/s", partitionWrites, perSecond(share, inboxIndex) / listShards, "nothing: more shards are a change of the program", "DynamoDB, partition key design"},
		{"a partition of `inbox`, read units/s", partitionReads, perSecond(share, waitsEach*looks*0.5), "fewer looks: callers keep a page for some seconds", "DynamoDB, partition key design"},
		{"a partition of `due`, write units/s", partitionWrites, perSecond(1, n.dueIndex()) / dueShards, "nothing: more shards are a change of the program", "DynamoDB, partition key design"},
		{"API Gateway, requests/s", apiRate, perSecond(1, n.apiCalls), "quota Throttle rate of the account", "API Gateway quotas"},
		{"messages in flight", sqsInFlight, busy, "quota of the queue", "SQS quotas"},
	}
}

// bill is a line of the third table, in dollars a day.
type bill struct {
	what string
	each float64
}

func bills(n need) []bill {
	return []bill{
		{"Lambda, step function, while models think", n.seconds*stepMemory/1024*perGBSecond + n.invocations*perInvoke},
		{"DynamoDB, writes", (n.Writes + n.IndexWrites) * perWrite},
		{"DynamoDB, reads", n.Reads * perRead},
		{"SQS", n.Sends * perMessage},
		{"CloudWatch, logs", (n.invocations + n.apiCalls) * logBytes / 1e9 * perLogGB},
		{"API Gateway and its functions", n.apiCalls * (perAPICall + perInvoke + 0.05*apiMemory/1024*perGBSecond)},
		{fmt.Sprintf("DynamoDB, storage of %d days", keptDays), keptDays * n.Bytes / 1e9 * perStoredGB / 30},
	}
}

// page is what is printed, in Markdown.
type page struct{ strings.Builder }

func (p *page) row(cells ...string) { p.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

func (p *page) head(cells ...string) {
	p.row(cells...)
	p.WriteString("|" + strings.Repeat(" --- |", len(cells)) + "\n")
}

// writeMoves prints what each move costs, without Lambda.
func writeMoves(w io.Writer, moves []move) error {
	var b page
	b.head("move", "requests to the table", "write units", "of them indexes", "read units", "messages", "bytes stored", "dollars for a million")
	for _, m := range moves {
		b.row(m.Name, number(m.Requests), number(m.Writes+m.IndexWrites), number(m.IndexWrites), number(m.Reads), number(m.Sends), number(m.Bytes), number(m.dollars()*1e6))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write prints what the parts of the stack do, which limits they meet, and the bill.
func write(w io.Writer, n need) error {
	var b page
	row, head := b.row, b.head
	sizes := func(of func(float64) string) []string {
		var cells []string
		for _, s := range scales {
			cells = append(cells, of(s))
		}
		return cells
	}
	title := sizes(func(s float64) string { return number(s) + " a day" })

	head(append([]string{"at the peak"}, title...)...)
	for _, p := range parts(n) {
		row(append([]string{p.what}, sizes(func(s float64) string { return number(p.of(s)) + p.unit })...)...)
	}
	b.WriteString("\n")

	all := limits(n)
	slices.SortStableFunc(all, func(a, b limit) int { return cmp.Compare(a.value/a.of, b.value/b.of) })
	head(append([]string{"limit", "value", "met at sessions a day", "what is turned", "source"}, title...)...)
	for _, l := range all {
		cells := []string{l.what, number(l.value), number(l.value / l.of), l.turn, l.source}
		row(append(cells, sizes(func(s float64) string {
			taken := s * l.of / l.value
			if taken > 1 {
				return "**" + number(taken) + " ×**"
			}
			return number(100*taken) + " %"
		})...)...)
	}
	b.WriteString("\n")

	head(append([]string{"dollars a day"}, title...)...)
	sum := 0.0
	for _, l := range bills(n) {
		sum += l.each
		row(append([]string{l.what}, sizes(func(s float64) string { return number(s * l.each) })...)...)
	}
	row(append([]string{"in all"}, sizes(func(s float64) string { return number(s * sum) })...)...)
	row(append([]string{"of one session"}, sizes(func(float64) string { return number(sum) })...)...)
	_, err := io.WriteString(w, b.String())
	return err
}

// number writes two digits that count, and thousands apart.
func number(x float64) string {
	if x == 0 {
		return "0"
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 1, 64), 64)
	text := strconv.FormatFloat(rounded, 'f', -1, 64)
	whole, rest, fraction := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction {
		return whole + "." + rest
	}
	return whole
}
