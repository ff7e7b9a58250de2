package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
)

// report is what is measured, in the time of the simulation.
type report struct {
	mu           sync.Mutex
	counts       map[string]int
	hops         map[string][]time.Duration // from sent to received, by whose
	turnarounds  map[string][]time.Duration // from answer to the entry that takes it in
	sweepTook    []time.Duration
	sweepsFailed int             // sweeps that told of a failure
	recovered    []time.Duration // from the end of the outage until a session moved that had moved last in it
	sweptMost    int
	dueMost      int
	faults       []string
	swept        int
	busiest      map[string]int
	depths       []int
	restAfter    time.Duration
}

func newReport() *report {
	return &report{counts: map[string]int{}, hops: map[string][]time.Duration{}, turnarounds: map[string][]time.Duration{}, busiest: map[string]int{}}
}

func (r *report) add(what string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what] += n
}

// whose is the class of a tenant.
func whose(tenant string) string {
	if tenant == huge {
		return huge
	}
	return "small"
}

// hop notes how long a message waited that is received for the first time.
func (r *report) hop(w *world, d queue.Delivery) {
	if d.Receives > 1 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	class := whose(d.Wake.Tenant)
	in := func(at, lasts time.Duration) bool {
		since := time.Since(w.began) - at
		return since > 0 && since < lasts
	}
	switch {
	case w.surge > 0 && in(w.surgeAt, surgeLasts):
		class += " in the surge"
	case w.outage > 0 && in(w.outageAt, w.outage+surgeLasts):
		class += " after the hour without a queue"
	}
	r.hops[class] = append(r.hops[class], time.Since(d.SentAt))
}

// surgeLasts is how long from its beginning the surge is looked at apart, and what the
// hour without a queue has piled up from its end.
const surgeLasts = 15 * time.Minute

func (r *report) turnaround(tenant string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnarounds[whose(tenant)] = append(r.turnarounds[whose(tenant)], took)
}

func (r *report) recovers(took time.Duration) {
	if took < 0 {
		return // it had moved meanwhile
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovered = append(r.recovered, took)
}

func (r *report) sweep(took time.Duration, failed bool, sent, due int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweepTook = append(r.sweepTook, took)
	if failed {
		r.sweepsFailed++
	}
	r.swept += sent
	r.sweptMost = max(r.sweptMost, sent)
	r.dueMost = max(r.dueMost, due)
}

func (r *report) busy(function string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busiest[function] = max(r.busiest[function], n)
}

func (r *report) depth(visible, _ int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.depths = append(r.depths, visible)
}

// percentile returns the p-th of a hundred.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// resentMost is how often the sweep sent for one entry.
func (w *world) resentMost() int {
	most := 0
	for _, tr := range w.tracks {
		most = max(most, tr.resentMost)
	}
	return most
}

// lines are the report as a table: the same for the same scenario.
func (w *world) lines() string {
	r := w.report
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	spread := func(what string, all []time.Duration) {
		round := func(p int) time.Duration { return percentile(all, p).Round(10 * time.Millisecond) }
		if len(all) > 0 {
			line(what+": p50, p99, most", "%s, %s, %s", round(50), round(99), round(100))
		}
	}
	line("sessions that began, that completed", "%d, %d", w.started, w.ended)
	line("the last one ended after", "%s", r.restAfter.Round(time.Minute))
	line("entries; faults found (out of order, twice, an effect twice, not completed, a message left)", "%d; %d", r.counts["entries"], len(r.faults))
	for _, class := range slices.Sorted(maps.Keys(r.hops)) {
		spread("a message waits, "+class, r.hops[class])
	}
	for _, class := range slices.Sorted(maps.Keys(r.turnarounds)) {
		spread("from answer to next entry, "+class, r.turnarounds[class])
	}
	line("sessions that the hour without a queue stopped", "%d", len(r.recovered))
	spread("from its end until they went on", r.recovered)
	line("sweeps; the longest; told of a failure", "%d; %s; %d", len(r.sweepTook), percentile(r.sweepTook, 100).Round(10*time.Millisecond), r.sweepsFailed)
	line("due in one sweep, most", "%d", r.dueMost)
	line("re-sent by the sweep: in all; in one sweep, most; for one entry, most", "%d; %d; %d", r.swept, r.sweptMost, w.resentMost())
	line("messages sent; received; waiting at once, most; dead letters", "%d; %d; %d; %d", w.steps.sends, w.steps.receives, w.steps.deepest, w.steps.dead)
	line("steps at once, most; cold starts", "%d; %d", r.busiest["step"], r.counts["cold starts"])
	line("faults: processes that died; requests that failed", "%d; %d", r.counts["processes that died"], r.counts["requests that failed"])
	line("people told of a failure: starts; answers", "%d; %d", r.counts["starts that told of a failure"], r.counts["answers that told of a failure"])
	c := w.table.counts
	line("requests to the table: claims; commits; updates; queries of journals; items; searches", "%d; %d; %d; %d; %d; %d", c["claim"], c["commit"], c["update"], c["entries"], c["items"], c["find"])
	throttled := 0
	for _, n := range w.table.throttled {
		throttled += n
	}
	line("attempts throttled; requests refused for it", "%d; %d", throttled, w.table.refused)
	return b.String()
}
