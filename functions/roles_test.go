//go:build aws && linux

package functions_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// role is what template.yaml lets a function do, of which its tests look at the actions.
type role struct {
	Properties struct {
		Policies []yaml.Node `yaml:"Policies"`
	} `yaml:"Properties"`
}

type policy struct {
	PolicyDocument struct {
		Statement []struct {
			Action any `yaml:"Action"`
		} `yaml:"Statement"`
	} `yaml:"PolicyDocument"`
}

// actions returns what the role of each function allows, by the function's name.
var actions = sync.OnceValues(func() (map[string][]string, error) {
	raw, err := os.ReadFile("../template.yaml")
	if err != nil {
		return nil, err
	}
	var template struct {
		Resources map[string]yaml.Node `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(raw, &template); err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, name := range names {
		node := template.Resources[strings.ToUpper(name[:1])+name[1:]+"Role"]
		var r role
		if err := node.Decode(&r); err != nil {
			return nil, err
		}
		for _, node := range r.Properties.Policies {
			if node.Kind != yaml.MappingNode {
				continue // a key's, under a condition
			}
			var p policy
			if err := node.Decode(&p); err != nil {
				return nil, err
			}
			for _, s := range p.PolicyDocument.Statement {
				switch action := s.Action.(type) {
				case string:
					all[name] = append(all[name], action)
				case []any:
					for _, a := range action {
						text, _ := a.(string)
						all[name] = append(all[name], text)
					}
				}
			}
		}
	}
	return all, nil
})

// needs are the actions that AWS asks for where a request has another name.
var needs = map[string][]string{
	"dynamodb:TransactWriteItems": {"dynamodb:PutItem", "dynamodb:UpdateItem"},
	"sqs:SendMessageBatch":        {"sqs:SendMessage"},
	"sqs:DeleteMessageBatch":      {"sqs:DeleteMessage"},
}

// checkRoles requires that whatever the functions asked of AWS is in their roles:
// the emulators let everybody do everything.
func (w *world) checkRoles(t testing.TB) {
	t.Helper()
	allowed, err := actions()
	require.NoError(t, err)
	for _, name := range names {
		require.NotEmpty(t, allowed[name], name)
		for request := range w.functions[name].Traffic() {
			needed := needs[request]
			if needed == nil {
				needed = []string{request}
			}
			for _, action := range needed {
				require.True(t, slices.Contains(allowed[name], action), "%s asks for %s; its role in template.yaml does not let it", name, action)
			}
		}
	}
}
