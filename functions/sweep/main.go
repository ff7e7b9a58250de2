// Command sweep is the Lambda function that repairs what crashes left behind, keeps deadlines, buries dead letters.
package main

import (
	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

func main() { lambdafn.Sweep(agents.Registry) }
