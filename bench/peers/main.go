// Command peers runs the programs beside it over the same work, by turns, and prints what they did.
//
// It prints medians of -rounds runs and, in brackets, how often the floor's (of the
// others, Adjourn's) that is: on another machine only these ratios stay about the same.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adjourn/adjourn/bench/work"
)

// programs are compared. Package door is Adjourn once more, through its server.
var programs = []string{"floor", "adjourn", "door", "dbos", "river"}

type column struct {
	title string
	unit  string
	// cases are run one after the other on one folder; the last one's result counts.
	cases [][]string
	pick  func(work.Result) float64
	// door says that it is measured through a door, too; only, nowhere else.
	door, only bool
}

// measures reports whether a column is one of a program's.
func (c column) measures(program string) bool {
	if program == "door" {
		return c.door
	}
	return !c.only
}

func main() {
	rounds := flag.Int("rounds", 5, "how often each case is run; medians are printed")
	kills := flag.Int("kills", 20, "how many processes are killed in the middle of side effects")
	only := flag.String("only", "", "some of the programs, by commas")
	bin := flag.String("bin", "", "the folder with the programs; empty builds them")
	flag.Parse()
	if *only != "" {
		programs = strings.Split(*only, ",")
	}
	if err := compare(*bin, *rounds, *kills); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var columns = []column{
	{"one session, a step", "µs", [][]string{{"one", "1", "2000"}}, func(r work.Result) float64 { return r.P50 }, false, false},
	{"one session", "steps/s", [][]string{{"one", "1", "2000"}}, func(r work.Result) float64 { return r.PerSecond }, false, false},
	{"side effect, a step", "µs", [][]string{{"effect", "1", "1000"}}, func(r work.Result) float64 { return r.P50 }, false, false},
	{"64 sessions of 20", "steps/s", [][]string{{"many", "64", "20"}}, func(r work.Result) float64 { return r.PerSecond }, true, false},
	{"64 sessions of 20, last answer after last commit", "ms", [][]string{{"many", "64", "20"}}, func(r work.Result) float64 { return r.Lag }, true, true},
	{"answer, alive", "ms", [][]string{{"answer", "1", "1"}}, func(r work.Result) float64 { return r.Answer }, false, false},
	{"answer, from spawn", "ms", [][]string{{"wait", "1", "1"}, {"spawned", "1", "1"}}, func(r work.Result) float64 { return r.Answer }, false, false},
	{"peak of 64 of 200", "MB", [][]string{{"memory", "64", "200"}}, func(r work.Result) float64 { return r.PeakMB }, true, false},
	{"peak of 1000 of 5", "MB", [][]string{{"memory", "1000", "5"}}, func(r work.Result) float64 { return r.PeakMB }, true, true},
}

func compare(bin string, rounds, kills int) error {
	if bin == "" {
		folder, err := os.MkdirTemp("", "adjourn-peers-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
		bin = folder
		for _, name := range programs {
			if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", bin+"/", "./"+name).CombinedOutput(); err != nil {
				return fmt.Errorf("build %s: %w\n%s", name, err, out)
			}
		}
	}
	all := make([]map[string][]float64, len(columns))
	for i, c := range columns {
		all[i] = map[string][]float64{}
		for round := range rounds {
			for turn := range programs { // another one begins each round
				name := programs[(turn+round)%len(programs)]
				if !c.measures(name) {
					continue
				}
				v, err := measure(bin, name, c)
				if err != nil {
					return err
				}
				all[i][name] = append(all[i][name], v)
			}
			fmt.Fprintf(os.Stderr, "\r%s: %d of %d   ", c.title, round+1, rounds)
		}
		fmt.Fprintln(os.Stderr)
	}
	print(rounds, all)
	for _, name := range programs {
		if name == "floor" || name == "door" {
			continue
		}
		repeated, done, err := killed(bin, name, kills)
		if err != nil {
			return err
		}
		fmt.Printf("%s: of %d processes killed in the middle of side effects, %d repeated one (%d sessions went on to their end)\n", name, kills, repeated, done)
	}
	return nil
}

func measure(bin, name string, c column) (float64, error) {
	folder, err := os.MkdirTemp("", "adjourn-peers-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	var r work.Result
	for _, args := range c.cases {
		out, err := command(bin, name, folder, args).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		if err != nil {
			return 0, fmt.Errorf("%s %s: %w", name, args, err)
		}
		if err := json.Unmarshal(out, &r); err != nil {
			return 0, fmt.Errorf("%s %s: %w", name, args, err)
		}
	}
	return c.pick(r), nil
}

func command(bin, name, folder string, args []string) *exec.Cmd {
	return exec.CommandContext(context.Background(), filepath.Join(bin, name), "-folder", folder,
		"-case", args[0], "-sessions", args[1], "-steps", args[2], "-spawned", strconv.FormatInt(time.Now().UnixNano(), 10))
}

// killed kills a process at a random moment of a session of side effects, lets another go on,
// and counts the trials in which a side effect happened twice.
func killed(bin, name string, trials int) (repeated, done int, err error) {
	for range trials {
		folder, err := os.MkdirTemp("", "adjourn-peers-")
		if err != nil {
			return 0, 0, err
		}
		first := command(bin, name, folder, []string{"killed", "1", "200"})
		if err := first.Start(); err != nil {
			return 0, 0, err
		}
		for lines(folder) < 20 { // it is under way
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
		_ = first.Process.Kill()
		_ = first.Wait()
		second := command(bin, name, folder, []string{"killed", "1", "200"})
		if err := second.Start(); err != nil {
			return 0, 0, err
		}
		ended := make(chan error, 1)
		go func() { ended <- second.Wait() }()
		select {
		case err := <-ended:
			if err == nil {
				done++
			}
		case <-time.After(20 * time.Second): // it does not go on
			_ = second.Process.Kill()
			<-ended
		}
		if twice(folder) {
			repeated++
		}
		if err := os.RemoveAll(folder); err != nil {
			return 0, 0, err
		}
	}
	return repeated, done, nil
}

func effects(folder string) []string {
	text, err := os.ReadFile(filepath.Join(folder, "effects"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(bytes.Trim(text, "\x00"))), "\n")
}

func lines(folder string) int { return len(effects(folder)) }

func twice(folder string) bool {
	all := effects(folder)
	slices.Sort(all)
	return len(slices.Compact(slices.Clone(all))) < len(all)
}

func print(rounds int, all []map[string][]float64) {
	fmt.Printf("%s/%s, %d cores, %s; every commit with fsync; median of %d runs\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), rounds)
	fmt.Println("| | " + strings.Join(programs, " | ") + " |")
	fmt.Println("|---" + strings.Repeat("|---", len(programs)) + "|")
	for i, c := range columns {
		row := []string{c.title + ", " + c.unit}
		for _, name := range programs {
			if !c.measures(name) {
				row = append(row, "–")
				continue
			}
			v, base := median(all[i][name]), "adjourn"
			if name == "adjourn" || name == "door" {
				base = "floor"
			}
			cell := strconv.FormatFloat(v, 'f', digits(v), 64)
			if b := all[i][base]; name != "floor" && len(b) > 0 && median(b) > 0 {
				cell += fmt.Sprintf(" (%.2f)", v/median(b))
			}
			row = append(row, cell)
		}
		fmt.Println("| " + strings.Join(row, " | ") + " |")
	}
	fmt.Println()
}

func digits(v float64) int {
	if v < 20 {
		return 1
	}
	return 0
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
