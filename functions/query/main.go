// Command query is the Lambda function that serves the routes that read.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Query(agents.Registry) }
