package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/adjourn/adjourn/pkg/cli"
)

// The program of the README: a refund above the limit pauses with exit code 10;
// the answer comes in another run of the program, which goes on and finishes.
func Example() {
	dir, err := os.MkdirTemp("", "adjourn-example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command := func(stdout io.Writer, args ...string) {
		args = append([]string{"--data", filepath.Join(dir, "adjourn.db"), "--quiet"}, args...)
		fmt.Println("exit", cli.Run(context.Background(), cli.Config{
			Registry: Registry, Program: "support", Args: args, Stdout: stdout, Stderr: os.Stderr, Who: "ann",
			Env: func(name string) string { return map[string]string{"XDG_CONFIG_HOME": dir}[name] },
		}))
	}
	command(io.Discard, "run", "--session", "ticket-1", "My order A-17 never came. I want my 250 dollars back.")
	command(os.Stdout, "resume", "ticket-1", "--approve", "w2-1", "--reason", "checked with the carrier")
	// Output:
	// exit 10
	// A-17 is refunded.
	// exit 0
}
