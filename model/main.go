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

	"github.com/adjourn/adjourn/model/internal/chain"
	"github.com/adjourn/adjourn/model/internal/search"
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
	if !searchAll(os.Stdout, os.Stderr, flag.Args(), search.Bounds{States: *states, Trace: !*quiet}) {
		os.Exit(1)
	}
}

// searchAll searches the models whose names begin with one of the prefixes, and
// reports whether each did as expected.
func searchAll(out, progress io.Writer, prefixes []string, b search.Bounds) bool {
	total, searched, wrong := 0, 0, 0
	began := time.Now()
	for _, m := range models() {
		if !chosen(m.Title(), prefixes) {
			continue
		}
		at := time.Now()
		b.Out = out
		b.Progress = func(n int) {
			say(progress, "  … %s: %d million states, %.0f s\n", m.Title(), n>>20, time.Since(at).Seconds())
		}
		o := m.Search(b)
		searched++
		total += o.States
		verdict, ok := o.Verdict(m.Expects())
		if !ok {
			wrong++
		}
		say(out, "%-78s %9d states %6.1f s  %s\n", m.Title(), o.States, time.Since(at).Seconds(), verdict)
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
	all := maps.Clone(chain.Texts)
	maps.Copy(all, search.Texts)
	maps.Copy(all, smallTexts)
	return all
}
