package report

import (
	"fmt"

	"github.com/adjourn/adjourn/pkg/llm"
)

// tokenKinds says of tokens how many were of which kind. Those of the cache are among the input, those of
// reasoning among the output; they are named where there are any.
func tokenKinds(u llm.Usage) string {
	kinds := fmt.Sprintf("%d in", u.Input)
	if u.CacheRead > 0 {
		kinds += fmt.Sprintf(", %d of them from the cache", u.CacheRead)
	}
	if u.CacheWrite > 0 {
		kinds += fmt.Sprintf(", %d of them into the cache", u.CacheWrite)
	}
	kinds += fmt.Sprintf(", %d out", u.Output)
	if u.Reasoning > 0 {
		kinds += fmt.Sprintf(", %d of them reasoning", u.Reasoning)
	}
	return kinds
}
