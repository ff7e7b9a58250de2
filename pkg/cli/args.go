package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// listsLast moves words that begin with "- " behind a double dash. Such a word
// is the first line of a list, as scripts and notes have it, and never a flag;
// the flag parser would take it for one.
func listsLast(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil {
		return args
	}
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	var front, lists []string
	for i, arg := range args[:end] {
		if strings.HasPrefix(arg, "- ") && (i == 0 || !takesValue(cmd, args[i-1])) {
			lists = append(lists, arg)
			continue
		}
		front = append(front, arg)
	}
	if lists == nil {
		return args
	}
	front = append(append(front, "--"), lists...)
	return append(front, args[min(end+1, len(args)):]...)
}

// unknownFlag returns the first word, before any command, that is a long flag which no
// command has; "" for none.
func unknownFlag(root *cobra.Command, args []string) string {
	known := append([]*cobra.Command{root}, root.Commands()...)
	for i, word := range args {
		name, long := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case word == "--":
			return ""
		case !long && !strings.HasPrefix(word, "-") && (i == 0 || !takesValue(root, args[i-1])):
			return ""
		case long && name != "help" && name != "version" && !slices.ContainsFunc(known, func(c *cobra.Command) bool { return c.Flag(name) != nil }):
			return word
		}
	}
	return ""
}

// takesValue says whether a word is a flag whose value is the next word.
func takesValue(cmd *cobra.Command, word string) bool {
	name, long := strings.CutPrefix(word, "--")
	if long {
		f := cmd.Flag(name)
		return f != nil && f.NoOptDefVal == ""
	}
	if len(word) != 2 || word[0] != '-' {
		return false
	}
	f := cmd.Flags().ShorthandLookup(word[1:])
	if f == nil {
		f = cmd.InheritedFlags().ShorthandLookup(word[1:])
	}
	return f != nil && f.NoOptDefVal == ""
}

func atMost(n int, advice string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("too many arguments, from %q on: %s", args[n], advice)
		}
		return nil
	}
}

func noArgs(advice string) cobra.PositionalArgs { return atMost(0, advice) }

// oneSession takes a session, and nothing else.
func oneSession(cmd *cobra.Command, args []string) error {
	if err := checkSession(args); err != nil {
		return err
	}
	return atMost(1, "this command takes 1 argument")(cmd, args)
}

// sessionAndOne takes a session, and perhaps one argument more.
func sessionAndOne(cmd *cobra.Command, args []string) error {
	if err := checkSession(args); err != nil {
		return err
	}
	return atMost(2, "this command takes 2 arguments")(cmd, args)
}

// checkSession refuses arguments that name no session.
func checkSession(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("the session is missing")
	case args[0] == "":
		return errors.New("the session is empty")
	}
	return nil
}

// strictHelp makes help about a command that there is not a mistake, as that command is.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if show := cmd.Run; cmd.Name() == "help" {
			cmd.Run, cmd.RunE = nil, func(cmd *cobra.Command, args []string) error {
				if _, _, err := root.Find(args); err != nil {
					return err
				}
				show(cmd, args)
				return nil
			}
		}
	}
}
