// Command step is the Lambda function that does one step of a session for each message of the queue.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Step(agents.Registry) }
