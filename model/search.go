package main

import (
	"fmt"
	"hash/maphash"
	"io"
	"slices"
)

// move is what somebody did: who, what, with which number.
type move struct {
	who, what string
	x         uint8
	// fault: nothing may rely on it. A fault, or somebody outside who comes or does not.
	fault bool
}

// space is a model: its first state, its moves, what must never be, where it may rest.
type space[S comparable] struct {
	name string
	// breaks names the properties that must break here; none: everything must hold.
	breaks []string
	first  S
	next   func(s *S, emit func(S, move))
	// broken returns the broken properties as bits, in the order of properties.
	broken     func(s *S) uint32
	properties []string
	// rest: nothing needs to happen any more. From every state one must be in reach without faults.
	rest func(s *S) bool
	// cut: a bound of the model was reached, the state is not followed further.
	cut  func(s *S) bool
	show func(s *S) string
}

// Two properties every model has. They are looked at once all states are known.
const (
	stuck = "stuck"
	spin  = "spin"
)

var always = map[string]string{
	stuck: "without further faults no rest is in reach",
	spin:  "something goes round for ever without further faults",
}

// bounds of a search.
type bounds struct {
	// states after which a search ends without having seen everything.
	states int
	// trace: shortest ways to what broke are written out.
	trace bool
	out   io.Writer
	// progress is called now and then with the number of states.
	progress func(states int)
}

// outcome of a search.
type outcome struct {
	states, cut, depth int
	// whole: every state was seen; otherwise those up to depth, and neither stuck nor spin was looked for.
	whole bool
	// missing are properties that should break and did not, harm those that broke and should hold.
	missing, harm []string
}

// model is what every space offers, whatever its state is.
type model interface {
	title() string
	expects() []string
	search(b bounds) outcome
}

func (m *space[S]) title() string     { return m.name }
func (m *space[S]) expects() []string { return m.breaks }

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

	moves  []move
	moveAt map[move]uint16
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
func (g *graph[S]) came(parent int32, l move) {
	id, ok := g.moveAt[l]
	if !ok {
		id = uint16(len(g.moves))
		g.moves = append(g.moves, l)
		g.moveAt[l] = id
	}
	g.parent = append(g.parent, parent)
	g.by = append(g.by, id)
}

// search visits every state within bounds, breadth first.
func (m *space[S]) search(b bounds) outcome {
	g := &graph[S]{seed: maphash.MakeSeed(), moveAt: map[move]uint16{}}
	g.add(m.first)
	g.came(-1, move{who: "start"})
	out := outcome{whole: true}
	found := map[string]int32{} // the first state with what broke
	level := 1                  // where the states of the next depth begin
	for i := int32(0); int(i) < g.len(); i++ {
		if int(i) == level {
			level = g.len()
			out.depth++
		}
		if g.len() > b.states || m.enough(found) {
			out.whole = false
			break
		}
		if b.progress != nil && i%(1<<20) == 1<<20-1 {
			b.progress(int(i))
		}
		g.from = append(g.from, int32(len(g.to)))
		s := *g.at(i)
		for v, p := m.broken(&s), 0; v != 0; v, p = v>>1, p+1 {
			name := m.properties[p]
			if _, ok := found[name]; v&1 != 0 && !ok {
				found[name] = i
			}
		}
		if m.cut != nil && m.cut(&s) {
			out.cut++
			continue
		}
		m.next(&s, func(t S, l move) {
			j, isNew := g.add(t)
			if isNew {
				g.came(i, l)
			}
			if !l.fault && j != i {
				g.to = append(g.to, j)
			}
		})
	}
	out.states = g.len()
	if out.whole {
		m.lookForRest(g, found)
	}
	m.judge(g, b, found, &out)
	return out
}

// enough: everything that should break has been seen to.
func (m *space[S]) enough(found map[string]int32) bool {
	return len(m.breaks) > 0 && !slices.ContainsFunc(m.breaks, func(p string) bool { _, ok := found[p]; return !ok })
}

func (m *space[S]) judge(g *graph[S], b bounds, found map[string]int32, out *outcome) {
	for _, p := range m.breaks {
		if _, ok := found[p]; !ok {
			out.missing = append(out.missing, p)
		}
	}
	for _, p := range slices.Concat(m.properties, []string{stuck, spin}) {
		i, ok := found[p]
		if !ok {
			continue
		}
		if len(m.breaks) == 0 {
			out.harm = append(out.harm, p)
		}
		if b.trace && (len(m.breaks) == 0 || slices.Contains(m.breaks, p)) {
			say(b.out, "  %s:\n", p)
			m.trace(g, b.out, i)
		}
	}
}

func (m *space[S]) trace(g *graph[S], out io.Writer, i int32) {
	var path []int32
	for ; i >= 0; i = g.parent[i] {
		path = append(path, i)
	}
	for _, j := range slices.Backward(path) {
		l := g.moves[g.by[j]]
		text := ""
		if m.show != nil {
			text = m.show(g.at(j))
		} else {
			text = fmt.Sprintf("%+v", *g.at(j))
		}
		say(out, "    %-42s %s\n", fmt.Sprintf("%s: %s %d", l.who, l.what, l.x), text)
	}
}

// lookForRest finds a state from which no rest is in reach by moves that are no
// faults, and one that leads to such moves going round.
func (m *space[S]) lookForRest(g *graph[S], found map[string]int32) {
	n := g.len()
	g.from = append(g.from, int32(len(g.to)))
	rests := make([]bool, n)
	for i := range rests {
		s := g.at(int32(i))
		rests[i] = m.rest(s) || m.cut != nil && m.cut(s)
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
		found[stuck] = int32(i)
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
		found[spin] = int32(i)
	}
}
