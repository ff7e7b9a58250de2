// Command start is the Lambda function that starts sessions, for HTTP requests or events.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Start(agents.Registry) }
