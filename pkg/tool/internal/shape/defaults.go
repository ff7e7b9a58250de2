package shape

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// maxDefaults bounds how many defaults are filled into one document: a schema may refer to itself.
const maxDefaults = 1000

// ErrEndless says that the defaults of a schema do not come to an end.
var ErrEndless = errors.New("the defaults of the schema do not come to an end")

// Fill puts the defaults of a schema into a document, where a property with a default is missing:
// those under properties and items, also behind a $ref into the schema. Both are decoded JSON.
func Fill(schema, doc any) (filled bool, err error) {
	f := filling{root: schema}
	f.value(schema, doc)
	if f.count > maxDefaults {
		return true, ErrEndless
	}
	return f.count > 0, nil
}

// Names in JSON pointers (RFC 6901).
var (
	escaped   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaped = strings.NewReplacer("~1", "/", "~0", "~")
)

type filling struct {
	root  any
	count int
}

func (f *filling) value(schema, doc any) {
	for _, node := range f.chain(schema) {
		switch doc := doc.(type) {
		case map[string]any:
			properties, _ := node["properties"].(map[string]any)
			for name, property := range properties {
				value, given := doc[name]
				if !given {
					fallback, has := f.fallback(property)
					if !has {
						continue
					}
					if f.count++; f.count > maxDefaults {
						return
					}
					value = clone(fallback)
					doc[name] = value
				}
				f.value(property, value)
			}
		case []any:
			for _, item := range doc {
				f.value(node["items"], item)
			}
		}
	}
}

// fallback returns the default of a schema.
func (f *filling) fallback(schema any) (fallback any, has bool) {
	for _, node := range f.chain(schema) {
		if fallback, has = node["default"]; has {
			break
		}
	}
	return fallback, has
}

// chain returns a schema and those that its $ref leads to, within the root.
func (f *filling) chain(schema any) []map[string]any {
	var chain []map[string]any
	for range maxEmbedded {
		node, _ := schema.(map[string]any)
		if node == nil {
			break
		}
		chain = append(chain, node)
		ref, _ := node["$ref"].(string)
		within, local := strings.CutPrefix(ref, "#")
		if !local {
			break
		}
		schema = At(f.root, within)
	}
	return chain
}

// At returns the part of decoded JSON that a pointer in a URL leads to, nil for none.
func At(root any, pointer string) any {
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" {
			continue
		}
		token = unescaped.Replace(token)
		switch v := root.(type) {
		case map[string]any:
			root = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			root = v[i]
		default:
			return nil
		}
	}
	return root
}

// clone copies decoded JSON.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for name, item := range v {
			c[name] = clone(item)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, item := range v {
			c[i] = clone(item)
		}
		return c
	}
	return value
}

// Defaults calls a function with each default of a schema and the JSON pointer of the schema that has
// it, and reports whether there is any.
func Defaults(schema any, check func(pointer string, value any)) (any bool) {
	return defaults(schema, "", check)
}

func defaults(schema any, at string, check func(string, any)) (found bool) {
	switch v := schema.(type) {
	case map[string]any:
		for word, part := range v {
			here := at + "/" + escaped.Replace(word)
			switch word {
			case "default":
				check(at, part)
				found = true
			case "const", "enum", "examples":
			case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
				named, _ := part.(map[string]any)
				for name, sub := range named {
					found = defaults(sub, here+"/"+escaped.Replace(name), check) || found
				}
			default:
				found = defaults(part, here, check) || found
			}
		}
	case []any:
		for i, part := range v {
			found = defaults(part, at+"/"+strconv.Itoa(i), check) || found
		}
	}
	return found
}
