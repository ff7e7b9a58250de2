// Command adjourn runs agents that stop and wait for people, from one binary.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/cli"
)

func main() { cli.Main(agents.Registry) }
