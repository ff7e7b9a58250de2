// Command submit is the Lambda function that serves the routes by which a session is answered.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Submit(agents.Registry) }
