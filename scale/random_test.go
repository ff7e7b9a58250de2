package main

import (
	"encoding/binary"
	"hash/fnv"
	"sync"
	"time"
)

// chance decides what the simulated world leaves open: latencies, faults, people.
// What it says of a thing depends on the seed, on the thing and on how often it was
// asked about it, and on nothing else: two runs of one seed are alike, in whatever
// order goroutines come to ask.
type chance struct {
	seed  uint64
	mu    sync.Mutex
	asked map[uint64]uint64
}

func newChance(seed uint64) *chance { return &chance{seed: seed, asked: map[uint64]uint64{}} }

// of returns a number from 0 up to 1 for a thing: the same each time.
func (c *chance) of(words ...string) float64 { return c.number(key(words), 0) }

// next returns a number from 0 up to 1: another one each time it is asked.
func (c *chance) next(words ...string) float64 {
	k := key(words)
	c.mu.Lock()
	c.asked[k]++
	n := c.asked[k]
	c.mu.Unlock()
	return c.number(k, n)
}

// about returns a time around a mean: between half of it and twice it, most of them below.
func (c *chance) about(mean time.Duration, words ...string) time.Duration {
	x := c.next(words...)
	return time.Duration((0.5 + 1.5*x*x) * float64(mean))
}

func key(words []string) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// number mixes as SplitMix64 does.
func (c *chance) number(key, n uint64) float64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], key^c.seed*0x9e3779b97f4a7c15^n*0xd1b54a32d192ed03)
	z := binary.LittleEndian.Uint64(b[:]) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}
