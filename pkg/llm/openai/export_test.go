package openai

import (
	"encoding/json"
	"errors"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Body returns what m would send, for hosts that no test can stand in for.
func Body(m llm.Model, req llm.Request) ([]byte, error) {
	ours, ok := m.(*model)
	if !ok {
		return nil, errors.New("not a model of this package")
	}
	params, err := ours.params(req)
	if err != nil {
		return nil, err
	}
	return json.Marshal(params)
}
