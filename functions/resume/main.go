// Command resume is the Lambda function that serves the routes by which a session goes on.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Resume(agents.Registry) }
