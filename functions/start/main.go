// Command start is the Lambda function that starts sessions for callers of the API.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Start(agents.Registry) }
