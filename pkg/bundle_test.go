package pkg_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// bundle is template.yaml as CloudFormation reads it: its short tags are written
// out, so that !Ref X is {"Ref": "X"}.
type bundle map[string]any

func readBundle(t *testing.T) bundle {
	t.Helper()
	raw, err := os.ReadFile("../template.yaml")
	require.NoError(t, err)
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal(raw, &doc))
	return asMap(t, written(t, doc.Content[0]))
}

// written returns a node's value with its tag written out.
func written(t *testing.T, n *yaml.Node) any {
	t.Helper()
	tag := n.Tag
	if strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") {
		plain := *n
		plain.Tag = ""
		if plain.Kind == yaml.ScalarNode {
			plain.Tag = "!!str"
		}
		name := strings.TrimPrefix(tag, "!")
		if name != "Ref" && name != "Condition" {
			name = "Fn::" + name
		}
		return map[string]any{name: written(t, &plain)}
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			require.NotContains(t, m, key, "line %d", n.Line)
			m[key] = written(t, n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, written(t, c))
		}
		return list
	case yaml.ScalarNode:
		var v any
		require.NoError(t, n.Decode(&v))
		return v
	case yaml.AliasNode, yaml.DocumentNode, yaml.StreamNode:
	}
	require.Fail(t, "CloudFormation knows no such YAML", "line %d", n.Line)
	return nil
}

func asMap(t *testing.T, v any) map[string]any {
	t.Helper()
	m, ok := v.(map[string]any)
	require.True(t, ok, "%v is no map", v)
	return m
}

func asList(t *testing.T, v any) []any {
	t.Helper()
	l, ok := v.([]any)
	require.True(t, ok, "%v is no list", v)
	return l
}

// section is Parameters, Resources and the like.
func (b bundle) section(t *testing.T, name string) map[string]any {
	t.Helper()
	return asMap(t, b[name])
}

// resource returns a resource of a type.
func (b bundle) resource(t *testing.T, id, kind string) map[string]any {
	t.Helper()
	r := asMap(t, b.section(t, "Resources")[id])
	require.Equal(t, kind, r["Type"], id)
	return r
}

// properties of a resource of a type.
func (b bundle) properties(t *testing.T, id, kind string) map[string]any {
	t.Helper()
	return asMap(t, b.resource(t, id, kind)["Properties"])
}

// ids of all resources of a type, sorted.
func (b bundle) ids(t *testing.T, kind string) []string {
	t.Helper()
	var ids []string
	for id, r := range b.section(t, "Resources") {
		if asMap(t, r)["Type"] == kind {
			ids = append(ids, id)
		}
	}
	return slices.Sorted(slices.Values(ids))
}

// walk calls visit for each value of the template with the path that leads to it.
func walk(v any, path string, visit func(path string, v any)) {
	visit(path, v)
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			walk(v[k], path+"/"+k, visit)
		}
	case []any:
		for i, e := range v {
			walk(e, fmt.Sprintf("%s/%d", path, i), visit)
		}
	}
}

// What templates are made of.

type object = map[string]any

func ref(id string) object    { return object{"Ref": id} }
func getAtt(of string) object { return object{"Fn::GetAtt": of} }
func sub(text string) object  { return object{"Fn::Sub": text} }
func when(cond string, yes, no any) object {
	return object{"Fn::If": []any{cond, yes, no}}
}
func equals(a, b any) object { return object{"Fn::Equals": []any{a, b}} }
func not(c any) object       { return object{"Fn::Not": []any{c}} }

var noValue = ref("AWS::NoValue")
