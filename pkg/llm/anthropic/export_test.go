package anthropic

import (
	"net/http"
	"slices"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// Through returns a model like m whose server is a function in the same process.
func Through(m llm.Model, server http.RoundTripper) llm.Model {
	ours, _ := m.(*model)
	other := *ours
	client := &http.Client{Transport: remote.Bounded(server, baseSetting)}
	other.messages.Options = append(slices.Clone(ours.messages.Options), option.WithHTTPClient(client))
	return &other
}
