package labtest

import "math/rand/v2"

// Mix says what a random script holds beside calls and what a person approves.
type Mix struct {
	// Ask has a person answer a question.
	Ask bool
	// Deny has a person refuse what is asked, now and then.
	Deny bool
	// Later puts a step off, now and then.
	Later bool
}

// Random writes a script with every kind of call: alone and up to four in one
// reply, and what a person must approve. The same rng writes the same script.
func Random(rng *rand.Rand, with Mix) *Script {
	s := &Script{}
	kinds := []func() Call{s.Line, s.Line, s.Once, s.Echo}
	batch := func(more ...Call) {
		for range 2 + rng.IntN(3) - len(more) {
			more = append(more, kinds[rng.IntN(len(kinds))]())
		}
		rng.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
		s.Add(more...)
	}
	parts := []func(){
		func() { s.Add(s.Line()) },
		func() { s.Add(s.Once()) },
		func() { s.Add(s.Echo()) },
		func() { batch() },
		func() { batch(s.Line(), s.Once()) },
		func() { batch(s.Line()) },
	}
	if with.Ask {
		parts[len(parts)-1] = func() { s.Add(s.Ask()) }
	}
	approvals := []func(){
		func() { s.Add(s.Deploy("deploy")) },
		func() { batch(s.Deploy("deploy")) },
	}
	if with.Deny {
		approvals = append(approvals,
			func() { s.Add(s.Deny()) },
			func() { s.Add(s.Deploy("deploy"), s.Deny()) },
		)
	}
	parts = append(parts, approvals[rng.IntN(len(approvals))])
	if with.Later && rng.IntN(3) == 0 {
		parts = append(parts, s.Later)
	}
	rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		part()
	}
	return s
}

// Fixed is the script of the tests that name a place: short, with every kind of
// call. Its approval is asked for by a tool like deploy.
func Fixed(approved string) *Script {
	s := &Script{}
	s.Add(s.Echo())
	s.Add(s.Line(), s.Once())
	s.Add(s.Deploy(approved), s.Line())
	s.Add(s.Once())
	return s
}
