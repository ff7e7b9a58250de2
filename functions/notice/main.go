// Command notice is the Lambda function that sends notices outside.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Notice(agents.Registry) }
