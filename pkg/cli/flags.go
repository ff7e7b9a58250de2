package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
)

// mayBeEmpty are the flags with a text that somebody may want to be empty, or whose
// own words for it say more.
var mayBeEmpty = map[string]bool{"reply": true, "reason": true, "error": true}

// checkNotEmpty refuses a flag that was given with an empty value: as a rule that is a
// variable of the shell which was never set, and a filter, a checkpoint or a key that
// is quietly left out is not what was meant.
func checkNotEmpty(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" && !mayBeEmpty[f.Name] {
			err = exit.Usagef("--%s is empty: give a value, or leave the flag out", f.Name)
		}
	})
	return err
}

// decisionVar registers a flag that decides by being there. It takes no value but true:
// --approve=false must not be read as an approval, nor as nothing.
func decisionVar(flags *pflag.FlagSet, to *bool, name, about string) {
	flags.VarPF((*decision)(to), name, "", about).NoOptDefVal = "true"
}

type decision bool

func (d *decision) String() string { return strconv.FormatBool(bool(*d)) }
func (d *decision) Type() string   { return "bool" }

func (d *decision) Set(value string) error {
	if yes, err := strconv.ParseBool(value); err != nil || !yes {
		return errors.New("it takes no value: give the flag alone, or leave it out")
	}
	*d = true
	return nil
}
