// Command event is the Lambda function that starts sessions for events, which have no caller.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Event(agents.Registry) }
