//go:build !unix

package datafile

import (
	"io/fs"
	"time"
)

// lockFolder does nothing: files that are in use cannot be removed here.
func lockFolder(string, time.Duration) (unlock func(), err error) { return func() {}, nil }

// syncFolder does nothing: there is no way to.
func syncFolder(string) error { return nil }

// fileNumber returns nothing: files that are in use cannot be lost here.
func fileNumber(fs.FileInfo) string { return "" }

// sameFile is never sure.
func sameFile(string, fs.FileInfo, bool) bool { return false }
