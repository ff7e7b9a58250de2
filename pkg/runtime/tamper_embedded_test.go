//go:build !aws

package runtime_test

import "testing"

// stocks are the engines whose records are changed.
func stocks() map[string]func(*testing.T) stock {
	return map[string]func(*testing.T) stock{"data file": newDataFile}
}
