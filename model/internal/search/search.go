// Package search visits every state of a model, breadth first, for what must never be.
package search

import (
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
)

// Move is what somebody did: who, what, with which number.
type Move struct {
	Who, What string
	X         uint8
	// Fault: nothing may rely on it. A fault, or somebody outside who comes or does not.
	Fault bool
}

// Space is a model: its first state, its moves, what must never be, where it may rest.
type Space[S comparable] struct {
	Name string
	// Breaks names the properties that must break here; none: everything must hold.
	Breaks []string
	First  S
	Next   func(s *S, emit func(S, Move))
	// Broken returns the broken properties as bits, in the order of Properties.
	Broken     func(s *S) uint32
	Properties []string
	// Rest: nothing needs to happen any more. From every state one must be in reach without faults.
	Rest func(s *S) bool
	// Cut: a bound of the model was reached, the state is not followed further.
	Cut  func(s *S) bool
	Show func(s *S) string
}

// Two properties every model has. They are looked at once all states are known.
const (
	Stuck = "stuck"
	Spin  = "spin"
)

// Texts say what it means that one of them is broken.
var Texts = map[string]string{
	Stuck: "without further faults no rest is in reach",
	Spin:  "something goes round for ever without further faults",
}

// Bounds of a search.
type Bounds struct {
	// States after which a search ends without having seen everything.
	States int
	// Trace: shortest ways to what broke are written out.
	Trace bool
	Out   io.Writer
	// Progress is called now and then with the number of states.
	Progress func(states int)
}

// Outcome of a search.
type Outcome struct {
	States, Cut, Depth int
	// Whole: every state was seen; otherwise those up to Depth, and neither [Stuck] nor [Spin] was looked for.
	Whole bool
	// Missing are properties that should break and did not, Harm those that broke and should hold.
	Missing, Harm []string
}

// Model is what every space offers, whatever its state is.
type Model interface {
	Title() string
	// Expects names the properties that must break.
	Expects() []string
	Search(b Bounds) Outcome
}

// Title returns the name of the model.
func (m *Space[S]) Title() string { return m.Name }

// Expects names the properties that must break.
func (m *Space[S]) Expects() []string { return m.Breaks }

// chunk is how many states are allocated at once.
const chunk = 1 << 14

// graph is what has been seen.
type graph[S comparable] struct {
	chunks [][]S
	hashes []uint64
	parent []int32
	by     []uint16
	slots  []int32 // open addressing by hash: index + 1
	seed   maphash.Seed

	moves  []Move
	moveAt map[Move]uint16
	// to holds the successors by moves that are no faults, from[i] where those of state i begin.
	to   []int32
	from []int32
}

func (g *graph[S]) at(i int32) *S { return &g.chunks[i/chunk][i%chunk] }
func (g *graph[S]) len() int      { return len(g.hashes) }

// add returns the index of a state, and whether it is new. Two states with one
// hash of 64 bits would be taken for one: of 20 million that happens in one search of 100,000.
func (g *graph[S]) add(s S) (int32, bool) {
	if 4*(g.len()+1) > 3*len(g.slots) {
		g.grow()
	}
	h := maphash.Comparable(g.seed, s)
	mask := uint64(len(g.slots) - 1)
	slot := h & mask
	for ; g.slots[slot] != 0; slot = (slot + 1) & mask {
		if i := g.slots[slot] - 1; g.hashes[i] == h {
			return i, false
		}
	}
	i := int32(g.len())
	g.slots[slot] = i + 1
	g.hashes = append(g.hashes, h)
	if i%chunk == 0 {
		g.chunks = append(g.chunks, make([]S, chunk))
	}
	*g.at(i) = s
	return i, true
}

func (g *graph[S]) grow() {
	g.slots = make([]int32, max(1<<12, 2*len(g.slots)))
	mask := uint64(len(g.slots) - 1)
	for i, h := range g.hashes {
		slot := h & mask
		for g.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		g.slots[slot] = int32(i) + 1
	}
}

// came remembers how a new state was reached first, which is a shortest way.
func (g *graph[S]) came(parent int32, l Move) {
	id, ok := g.moveAt[l]
	if !ok {
		id = uint16(len(g.moves))
		g.moves = append(g.moves, l)
		g.moveAt[l] = id
	}
	g.parent = append(g.parent, parent)
	g.by = append(g.by, id)
}

// Search visits every state within bounds, breadth first.
func (m *Space[S]) Search(b Bounds) Outcome {
	g := &graph[S]{seed: maphash.MakeSeed(), moveAt: map[Move]uint16{}}
	g.add(m.First)
	g.came(-1, Move{Who: "start"})
	out := Outcome{Whole: true}
	found := map[string]int32{} // the first state with what broke
	level := 1                  // where the states of the next depth begin
	for i := int32(0); int(i) < g.len(); i++ {
		if int(i) == level {
			level = g.len()
			out.Depth++
		}
		if g.len() > b.States || m.enough(found) {
			out.Whole = false
			break
		}
		if b.Progress != nil && i%(1<<20) == 1<<20-1 {
			b.Progress(int(i))
		}
		g.from = append(g.from, int32(len(g.to)))
		s := *g.at(i)
		for v, p := m.Broken(&s), 0; v != 0; v, p = v>>1, p+1 {
			name := m.Properties[p]
			if _, ok := found[name]; v&1 != 0 && !ok {
				found[name] = i
			}
		}
		if m.Cut != nil && m.Cut(&s) {
			out.Cut++
			continue
		}
		m.Next(&s, func(t S, l Move) {
			j, isNew := g.add(t)
			if isNew {
				g.came(i, l)
			}
			if !l.Fault && j != i {
				g.to = append(g.to, j)
			}
		})
	}
	out.States = g.len()
	if out.Whole {
		m.lookForRest(g, found)
	}
	m.judge(g, b, found, &out)
	return out
}

// enough: everything that should break has been seen to.
func (m *Space[S]) enough(found map[string]int32) bool {
	return len(m.Breaks) > 0 && !slices.ContainsFunc(m.Breaks, func(p string) bool { _, ok := found[p]; return !ok })
}

func (m *Space[S]) judge(g *graph[S], b Bounds, found map[string]int32, out *Outcome) {
	for _, p := range m.Breaks {
		if _, ok := found[p]; !ok {
			out.Missing = append(out.Missing, p)
		}
	}
	for _, p := range slices.Concat(m.Properties, []string{Stuck, Spin}) {
		i, ok := found[p]
		if !ok {
			continue
		}
		if len(m.Breaks) == 0 {
			out.Harm = append(out.Harm, p)
		}
		if b.Trace && (len(m.Breaks) == 0 || slices.Contains(m.Breaks, p)) {
			say(b.Out, "  %s:\n", p)
			m.trace(g, b.Out, i)
		}
	}
}

func (m *Space[S]) trace(g *graph[S], out io.Writer, i int32) {
	var path []int32
	for ; i >= 0; i = g.parent[i] {
		path = append(path, i)
	}
	for _, j := range slices.Backward(path) {
		l := g.moves[g.by[j]]
		text := ""
		if m.Show != nil {
			text = m.Show(g.at(j))
		} else {
			text = fmt.Sprintf("%+v", *g.at(j))
		}
		say(out, "    %-42s %s\n", fmt.Sprintf("%s: %s %d", l.Who, l.What, l.X), text)
	}
}

// lookForRest finds a state from which no rest is in reach by moves that are no
// faults, and one that leads to such moves going round.
func (m *Space[S]) lookForRest(g *graph[S], found map[string]int32) {
	n := g.len()
	g.from = append(g.from, int32(len(g.to)))
	rests := make([]bool, n)
	for i := range rests {
		s := g.at(int32(i))
		rests[i] = m.Rest(s) || m.Cut != nil && m.Cut(s)
	}
	// The edges the other way round.
	begin := make([]int32, n+1)
	for _, t := range g.to {
		begin[t+1]++
	}
	for i := range n {
		begin[i+1] += begin[i]
	}
	back, fill, leaves := make([]int32, len(g.to)), slices.Clone(begin[:n]), make([]int32, n)
	for i := range int32(n) {
		for _, t := range g.to[g.from[i]:g.from[i+1]] {
			back[fill[t]] = i
			fill[t]++
			if !rests[t] {
				leaves[i]++
			}
		}
	}
	before := func(i int32) []int32 { return back[begin[i]:begin[i+1]] }
	reach := slices.Clone(rests)
	var todo []int32
	for i := range int32(n) {
		if rests[i] {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range before(i) {
			if !reach[j] {
				reach[j] = true
				todo = append(todo, j)
			}
		}
	}
	if i := slices.Index(reach, false); i >= 0 {
		found[Stuck] = int32(i)
	}
	// Take away what leads nowhere but to rests, again and again: what stays goes round.
	gone := rests
	for i := range int32(n) {
		if !rests[i] && leaves[i] == 0 {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		gone[i] = true
		for _, j := range before(i) {
			if leaves[j]--; leaves[j] == 0 && !gone[j] {
				todo = append(todo, j)
			}
		}
	}
	if i := slices.Index(gone, false); i >= 0 {
		found[Spin] = int32(i)
	}
}

// Verdict says in words what came of a search, and whether that was expected. A
// search that ended at its bound has found nothing missing yet.
func (o Outcome) Verdict(expects []string) (string, bool) {
	bound := ""
	if o.Cut > 0 {
		bound = fmt.Sprintf(", %d cut", o.Cut)
	}
	early := !o.Whole && (len(expects) == 0 || len(o.Missing) > 0)
	if early {
		bound += fmt.Sprintf(", bounded at depth %d", o.Depth)
	}
	switch {
	case len(o.Harm) > 0:
		return "MUST HOLD, but broken: " + strings.Join(o.Harm, ", ") + bound, false
	case len(o.Missing) > 0 && o.Whole:
		return "MUST BREAK, but holds: " + strings.Join(o.Missing, ", ") + bound, false
	case len(o.Missing) > 0:
		return "not seen to break yet: " + strings.Join(o.Missing, ", ") + bound, true
	case len(expects) > 0:
		return "breaks as it must: " + strings.Join(expects, ", ") + bound, true
	}
	return "holds" + bound, true
}

// say writes to people; nobody could do anything about an error of that.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
