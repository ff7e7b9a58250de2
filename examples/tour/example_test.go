package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/pkg/cli"
)

// The client says where the user is, a person takes the table, the task ends with
// structured output: three runs of the program, and nothing runs in between.
func Example() {
	dir, err := os.MkdirTemp("", "adjourn-tour")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command := func(stdout io.Writer, args ...string) {
		args = append([]string{"--data", filepath.Join(dir, "adjourn.db"), "--output", "json"}, args...)
		fmt.Println("exit", cli.Run(context.Background(), cli.Config{
			Registry: Registry, Program: "tour", Args: args, Stdout: stdout, Who: "ann", Env: func(name string) string { return map[string]string{"XDG_CONFIG_HOME": dir}[name] },
		}))
	}
	command(io.Discard, "run", "--session", "dinner", "a table for tonight, please")
	command(io.Discard, "submit", "dinner", "--call", "c2-1", "--result", `{"city":"Bern"}`)
	var last strings.Builder
	command(&last, "submit", "dinner", "w6-1", "--select", "yes")
	var manifest struct {
		Outcome string
		Output  json.RawMessage
	}
	if err := json.Unmarshal([]byte(last.String()), &manifest); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(manifest.Outcome, strings.Join(strings.Fields(string(manifest.Output)), ""))
	// Output:
	// exit 10
	// exit 10
	// exit 0
	// completed {"table":"table7inBern","taken":true}
}
