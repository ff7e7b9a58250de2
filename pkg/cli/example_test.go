package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli"
)

// The main of a program is one line: cli.Main(registry). Run is the same for a test.
func Example() {
	registry := func() (*agent.Registry, error) {
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "greeter", Planner: agent.Replies(agent.Reply{Text: "Hello."})}}})
	}
	dir, err := os.MkdirTemp("", "adjourn-example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	code := cli.Run(context.Background(), cli.Config{
		Registry: registry, Program: "hello", Stdout: os.Stdout, Who: "ann",
		Args: []string{"run", "--data", filepath.Join(dir, "hello.db"), "--quiet", "Hi"},
		Env:  func(name string) string { return map[string]string{"XDG_CONFIG_HOME": dir}[name] },
	})
	fmt.Println("exit", code)
	// Output:
	// Hello.
	// exit 0
}
