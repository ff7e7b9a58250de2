package work

import (
	"slices"

	"github.com/spf13/pflag"
)

// Replayed is said of a request that is repeated under its key.
const Replayed = "This request was carried out before; here is where its session stands."

// Key is the flag by which a command may be repeated.
type Key struct{ Text string }

// Register adds the flag to those of a command.
func (k *Key) Register(flags *pflag.FlagSet) {
	flags.StringVar(&k.Text, "idempotency-key", "", "`key` that makes repeating this command harmless")
}

// Words are the flag, if it was given, for a command that is printed.
func (k *Key) Words() []string {
	if k.Text == "" {
		return nil
	}
	return []string{"--idempotency-key", k.Text}
}

// Task are the flags of a command that begins a task from a checkpoint.
type Task struct {
	Key
	Rules Rules
	Stay  Stay
}

// Register adds the flags to those of a command.
func (t *Task) Register(flags *pflag.FlagSet) {
	t.Key.Register(flags)
	t.Rules.Register(flags)
	t.Stay.Register(flags)
}

// Words are those that were given, for a command that is printed.
func (t *Task) Words() []string { return slices.Concat(t.Key.Words(), t.Rules.Words()) }
