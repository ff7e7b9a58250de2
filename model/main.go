package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	states := flag.Int("states", 20_000_000, "end a search after so many states")
	quiet := flag.Bool("q", false, "write out no traces")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./model [-q] [-states N] [PREFIX…]\n\nSearches the configurations whose names begin with a PREFIX, or all.")
		flag.PrintDefaults()
	}
	flag.Parse()
	debug.SetMemoryLimit(8 << 30)
	if !searchAll(os.Stdout, os.Stderr, flag.Args(), bounds{states: *states, trace: !*quiet}) {
		os.Exit(1)
	}
}

// searchAll searches the models whose names begin with one of the prefixes, and
// reports whether each did as expected.
func searchAll(out, progress io.Writer, prefixes []string, b bounds) bool {
	total, searched, wrong := 0, 0, 0
	began := time.Now()
	for _, m := range models() {
		if !chosen(m.title(), prefixes) {
			continue
		}
		at := time.Now()
		b.out = out
		b.progress = func(n int) {
			say(progress, "  … %s: %d million states, %.0f s\n", m.title(), n>>20, time.Since(at).Seconds())
		}
		o := m.search(b)
		searched++
		total += o.states
		verdict, ok := o.verdict(m.expects())
		if !ok {
			wrong++
		}
		say(out, "%-78s %9d states %6.1f s  %s\n", m.title(), o.states, time.Since(at).Seconds(), verdict)
		debug.FreeOSMemory()
	}
	say(out, "%d configurations, %d states, %.0f s, %d not as expected\n", searched, total, time.Since(began).Seconds(), wrong)
	return wrong == 0 && searched > 0
}

// say writes to people; nobody could do anything about an error of that.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

func chosen(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return len(prefixes) == 0
}

// allProperties are the properties of every model, with what a broken one means.
func allProperties() map[string]string {
	all := maps.Clone(propertyTexts)
	maps.Copy(all, always)
	maps.Copy(all, smallTexts)
	return all
}

// verdict says in words what came of a search, and whether that was expected. A
// search that ended at its bound has found nothing missing yet.
func (o outcome) verdict(expects []string) (string, bool) {
	bound := ""
	if o.cut > 0 {
		bound = fmt.Sprintf(", %d cut", o.cut)
	}
	early := !o.whole && (len(expects) == 0 || len(o.missing) > 0)
	if early {
		bound += fmt.Sprintf(", bounded at depth %d", o.depth)
	}
	switch {
	case len(o.harm) > 0:
		return "MUST HOLD, but broken: " + strings.Join(o.harm, ", ") + bound, false
	case len(o.missing) > 0 && o.whole:
		return "MUST BREAK, but holds: " + strings.Join(o.missing, ", ") + bound, false
	case len(o.missing) > 0:
		return "not seen to break yet: " + strings.Join(o.missing, ", ") + bound, true
	case len(expects) > 0:
		return "breaks as it must: " + strings.Join(expects, ", ") + bound, true
	}
	return "holds" + bound, true
}
