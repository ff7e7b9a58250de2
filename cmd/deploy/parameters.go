package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// parameter is one of template.yaml's, with what CloudFormation holds its value to.
type parameter struct {
	Type                  string
	Default               yaml.Node
	Description           string
	AllowedValues         []yaml.Node `yaml:"AllowedValues"`
	AllowedPattern        string      `yaml:"AllowedPattern"`
	ConstraintDescription string      `yaml:"ConstraintDescription"`
	MinLength             *int        `yaml:"MinLength"`
	MaxLength             *int        `yaml:"MaxLength"`
	MinValue              *float64    `yaml:"MinValue"`
	MaxValue              *float64    `yaml:"MaxValue"`
}

// readParameters reads the parameters of a template.
func readParameters(path string) (map[string]parameter, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var template struct {
		Parameters map[string]map[string]yaml.Node `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal(raw, &template); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	found := map[string]parameter{}
	for name, fields := range template.Parameters {
		var p parameter
		for field, into := range map[string]any{
			"Type": &p.Type, "Default": &p.Default, "Description": &p.Description, "AllowedValues": &p.AllowedValues,
			"AllowedPattern": &p.AllowedPattern, "ConstraintDescription": &p.ConstraintDescription,
			"MinLength": &p.MinLength, "MaxLength": &p.MaxLength, "MinValue": &p.MinValue, "MaxValue": &p.MaxValue,
		} {
			if node, ok := fields[field]; ok {
				if err := node.Decode(into); err != nil {
					return nil, fmt.Errorf("%s: parameter %s: %s: %w", path, name, field, err)
				}
			}
		}
		found[name] = p
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no parameters", path)
	}
	return found, nil
}

// value is the default as CloudFormation takes it.
func (p parameter) value() string { return p.Default.Value }

// fault says what CloudFormation would refuse, "" if nothing.
func (p parameter) fault(value string) string {
	var allowed []string
	for _, node := range p.AllowedValues {
		allowed = append(allowed, node.Value)
	}
	if allowed != nil && !slices.Contains(allowed, value) {
		return fmt.Sprintf("%q is none of %s", value, strings.Join(allowed, ", "))
	}
	if p.AllowedPattern != "" {
		pattern, err := regexp.Compile("^(?:" + p.AllowedPattern + ")$")
		if err == nil && !pattern.MatchString(value) {
			must := "match " + p.AllowedPattern
			if p.ConstraintDescription != "" {
				must = "be " + strings.TrimPrefix(p.ConstraintDescription, "be ")
			}
			return fmt.Sprintf("%q must %s", value, must)
		}
	}
	n := utf8.RuneCountInString(value)
	if p.MinLength != nil && n < *p.MinLength {
		return fmt.Sprintf("it needs %d characters", *p.MinLength)
	}
	if p.MaxLength != nil && n > *p.MaxLength {
		return fmt.Sprintf("it may have %d characters, and has %d", *p.MaxLength, n)
	}
	if p.Type != "Number" {
		return ""
	}
	number, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is no number", value)
	case p.MinValue != nil && number < *p.MinValue:
		return fmt.Sprintf("it is %v at least", *p.MinValue)
	case p.MaxValue != nil && number > *p.MaxValue:
		return fmt.Sprintf("it is %v at most", *p.MaxValue)
	}
	return ""
}
