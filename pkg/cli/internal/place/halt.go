package place

import (
	"fmt"
	"sync"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
)

// Halted says what stands still because of a halt, who stopped it, and what lets it go on.
func (p *Place) Halted(halt client.Halt) string {
	who := ""
	switch {
	case halt.Who != "":
		who = " by " + screen.CleanLine(halt.Who)
	case p.Remote():
		who = " by whoever runs the server"
	}
	text := fmt.Sprintf("Stopped%s since %s: %s", who, halt.At.Local().Format(time.DateTime), screen.CleanLine(halt.Scope()))
	if halt.Reason != "" {
		text += " (" + screen.CleanLine(halt.Reason) + ")"
	}
	if p.Remote() && halt.ByOperator {
		return text + ". Whoever runs the server lets it go on."
	}
	return text + ". To let it go on: " + p.GoCommand(halt)
}

// GoCommand is the command that lifts a halt.
func (p *Place) GoCommand(halt client.Halt) string {
	words := []string{"go"}
	if halt.Agent != "" {
		words = append(words, "--agent", halt.Agent)
	}
	if halt.Tenant != "" && !p.Remote() {
		words = append(words, "--tenant", halt.Tenant)
	}
	return p.Command(words...)
}

// haltTeller tells of each halt once.
type haltTeller struct {
	mu   sync.Mutex
	told map[time.Time]bool
}

// tellHalt tells the person at the terminal why nothing happens.
func (p *Place) tellHalt(halt client.Halt) {
	p.halts.mu.Lock()
	defer p.halts.mu.Unlock()
	if p.halts.told[halt.At] {
		return
	}
	if p.halts.told == nil {
		p.halts.told = map[time.Time]bool{}
	}
	p.halts.told[halt.At] = true
	p.Screen.Talk("%s", p.Halted(halt))
}
