//go:build linux

package sqlite

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// disk is what a disk holds of the files in a folder: what was synced, and of what
// was written since, nothing, all or some. SQLite writes through it.
type disk struct {
	dir string

	mu    sync.Mutex
	files map[string]*diskFile
	syncs int
}

// diskFile is one file. Its name is on the disk once it was synced.
type diskFile struct {
	synced  []byte
	named   bool
	pending []diskWrite
}

// diskWrite is a write; one without data cuts the file off.
type diskWrite struct {
	at   int64
	data []byte
}

func (w diskWrite) apply(to []byte) []byte {
	if w.data == nil {
		return to[:min(int64(len(to)), w.at)]
	}
	if end := w.at + int64(len(w.data)); end > int64(len(to)) {
		to = append(to, make([]byte, end-int64(len(to)))...)
	}
	copy(to[w.at:], w.data)
	return to
}

// copyTo writes the files as they are when power fails now: what keep says of each
// sector that was written and not synced.
func (d *disk) copyTo(dir string, keep func() bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, f := range d.files {
		if !f.named && !keep() {
			continue
		}
		content := slices.Clone(f.synced)
		for _, w := range f.pending {
			if w.data == nil && keep() {
				content = w.apply(content)
			}
			for from := 0; from < len(w.data); from += sector {
				if keep() {
					content = diskWrite{w.at + int64(from), w.data[from:min(from+sector, len(w.data))]}.apply(content)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func lostAll() bool  { return false }
func keptSome() bool { return rand.IntN(2) == 0 }

// The disk under test, SQLite's own way to files, its tables of methods and ours.
var shim struct {
	sync.Mutex
	disk    *disk
	real    *sqlite3.Tsqlite3_vfs
	realPtr uintptr
	open    map[uintptr]*diskFile // by SQLite's file
	methods map[uintptr]uintptr   // from its table to ours
	back    map[uintptr]uintptr
}

// installDisk puts a disk between SQLite and files from now on, in all of this process.
func installDisk(dir string) (*disk, error) {
	tls := libc.NewTLS()
	real := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if real == 0 {
		return nil, errors.New("SQLite has no way to files")
	}
	ours := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	name, err := libc.CString("disk")
	if err != nil {
		return nil, err
	}
	vfs := vfsAt(ours)
	*vfs = *vfsAt(real)
	vfs.FzName, vfs.FpNext = name, 0
	vfs.FxOpen, vfs.FxDelete = pointer(diskOpen), pointer(diskDelete)
	shim.disk = &disk{dir: dir, files: map[string]*diskFile{}}
	shim.real, shim.realPtr = vfsAt(real), real
	shim.open, shim.methods, shim.back = map[uintptr]*diskFile{}, map[uintptr]uintptr{}, map[uintptr]uintptr{}
	if rc := sqlite3.Xsqlite3_vfs_register(tls, ours, 1); rc != sqlite3.SQLITE_OK {
		return nil, errors.New("SQLite takes no other way to files")
	}
	return shim.disk, nil
}

// pointer is a Go function as SQLite, which is C made Go, calls it.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function is the reverse.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// These read C's memory, which Go neither moves nor frees.
func vfsAt(p uintptr) *sqlite3.Tsqlite3_vfs {
	return *(**sqlite3.Tsqlite3_vfs)(unsafe.Pointer(&p))
}

func methodsAt(p uintptr) *sqlite3.Tsqlite3_io_methods {
	return *(**sqlite3.Tsqlite3_io_methods)(unsafe.Pointer(&p))
}

func fileAt(p uintptr) *sqlite3.Tsqlite3_file {
	return *(**sqlite3.Tsqlite3_file)(unsafe.Pointer(&p))
}

type (
	openFunc  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	delFunc   = func(tls *libc.TLS, vfs, name uintptr, sync int32) int32
	closeFunc = func(tls *libc.TLS, file uintptr) int32
	writeFunc = func(tls *libc.TLS, file, data uintptr, n int32, at int64) int32
	cutFunc   = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc  = func(tls *libc.TLS, file uintptr, flags int32) int32
)

func diskOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	shim.Lock()
	defer shim.Unlock()
	d, path := shim.disk, ""
	var f *diskFile
	if flags&(sqlite3.SQLITE_OPEN_MAIN_DB|sqlite3.SQLITE_OPEN_WAL) != 0 && name != 0 {
		path = libc.GoString(name)
	}
	if strings.HasPrefix(path, d.dir+"/") {
		d.mu.Lock()
		defer d.mu.Unlock()
		if f = d.files[path]; f == nil {
			f = &diskFile{}
			if content, err := os.ReadFile(path); err == nil { // it was there before
				f.synced, f.named = content, true
			}
		}
	}
	rc := function[openFunc](shim.real.FxOpen)(tls, shim.realPtr, name, file, flags, out)
	if rc != sqlite3.SQLITE_OK || f == nil {
		return rc
	}
	d.files[path] = f
	shim.open[file] = f
	own := fileAt(file).FpMethods
	ours := shim.methods[own]
	if ours == 0 {
		ours = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
		m := methodsAt(ours)
		*m = *methodsAt(own)
		m.FxClose, m.FxWrite, m.FxTruncate, m.FxSync = pointer(diskClose), pointer(diskWriteAt), pointer(diskCut), pointer(diskSync)
		shim.methods[own], shim.back[ours] = ours, own
	}
	fileAt(file).FpMethods = ours
	return rc
}

// opened returns a file and the methods that were there before ours.
func opened(file uintptr) (*diskFile, *sqlite3.Tsqlite3_io_methods) {
	shim.Lock()
	defer shim.Unlock()
	return shim.open[file], methodsAt(shim.back[fileAt(file).FpMethods])
}

func diskDelete(tls *libc.TLS, _, name uintptr, sync int32) int32 {
	d := shim.disk
	d.mu.Lock()
	delete(d.files, libc.GoString(name))
	d.mu.Unlock()
	return function[delFunc](shim.real.FxDelete)(tls, shim.realPtr, name, sync)
}

func diskClose(tls *libc.TLS, file uintptr) int32 {
	_, m := opened(file)
	shim.Lock()
	delete(shim.open, file)
	shim.Unlock()
	return function[closeFunc](m.FxClose)(tls, file)
}

func diskWriteAt(tls *libc.TLS, file, data uintptr, n int32, at int64) int32 {
	f, m := opened(file)
	shim.disk.mu.Lock()
	f.pending = append(f.pending, diskWrite{at, slices.Clone(unsafe.Slice(*(**byte)(unsafe.Pointer(&data)), n))})
	shim.disk.mu.Unlock()
	return function[writeFunc](m.FxWrite)(tls, file, data, n, at)
}

func diskCut(tls *libc.TLS, file uintptr, size int64) int32 {
	f, m := opened(file)
	shim.disk.mu.Lock()
	f.pending = append(f.pending, diskWrite{at: size})
	shim.disk.mu.Unlock()
	return function[cutFunc](m.FxTruncate)(tls, file, size)
}

func diskSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f, m := opened(file)
	shim.disk.mu.Lock()
	for _, w := range f.pending {
		f.synced = w.apply(f.synced)
	}
	f.pending, f.named = nil, true
	shim.disk.syncs++
	shim.disk.mu.Unlock()
	return function[syncFunc](m.FxSync)(tls, file, flags)
}
