package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v4"
)

//go:embed openapi.yaml
var openAPISource []byte

// openAPIDocument is the document as JSON, made when somebody first asks: a
// function that starts cold should not pay for it.
var openAPIDocument = sync.OnceValues(func() (json.RawMessage, error) {
	var document map[string]any
	if err := yaml.Unmarshal(openAPISource, &document); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml as JSON: %w", err)
	}
	return raw, nil
})

// openAPI is GET /openapi.json.
func (*handler) openAPI(r *request) (*response, error) {
	if _, err := r.parameters(); err != nil {
		return nil, err
	}
	document, err := openAPIDocument()
	if err != nil {
		return nil, err
	}
	return ok(document)
}
