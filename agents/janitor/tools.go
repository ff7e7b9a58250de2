package janitor

import (
	"context"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The names of the tools.
const (
	ListFiles  = "list_files"
	HashFile   = "hash_file"
	DeleteFile = "delete_file"
)

// ListIn names a folder.
type ListIn struct {
	Folder string `json:"folder" jsonschema:"the folder to look at; a relative path starts at the folder that holds them all"`
}

// Listing is what in a folder can be a copy of something.
type Listing struct {
	// Folder is the absolute path, which the other tools want.
	Folder string `json:"folder"`
	// Files are those whose size occurs more than once, by size, then by which to keep.
	Files []File `json:"files"`
	// HardLinks are second names of files. They take no space of their own.
	HardLinks []HardLink `json:"hardLinks,omitempty"`
	// Skipped are files and folders that could not be looked at.
	Skipped []Skipped `json:"skipped,omitempty"`
	// Leftovers are files that a deletion moved aside and could not delete any
	// more, because it was stopped. Each may be the last one with its content.
	Leftovers []Leftover `json:"leftovers,omitempty"`
	// Scanned counts the files looked at; Empty ones are among them. Hidden
	// entries and symlinks are left alone.
	Scanned  int `json:"scanned"`
	Empty    int `json:"empty,omitempty"`
	Hidden   int `json:"hidden,omitempty"`
	Symlinks int `json:"symlinks,omitempty"`
}

// File is one file of a listing; its path is relative to the folder, with slashes.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Linked says that the file has a second name in the folder, so that
	// deleting this one would free nothing.
	Linked bool `json:"linked,omitempty"`
}

// HardLink is a second name of a file.
type HardLink struct {
	Path   string `json:"path"`
	SameAs string `json:"sameAs"`
}

// Leftover is a file that was moved aside.
type Leftover struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Was its path, if that is known. Renaming the file to it brings the file back.
	Was string `json:"was,omitempty"`
}

// Skipped is what could not be looked at, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// HashIn names a file.
type HashIn struct {
	Folder string `json:"folder" jsonschema:"the absolute folder that list_files returned"`
	Path   string `json:"path" jsonschema:"the path of the file as list_files returned it"`
}

// Hash is the content of a file in short.
type Hash struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// DeleteIn names a copy, what it was when it was shown, and what is kept.
type DeleteIn struct {
	Folder string `json:"folder" jsonschema:"the absolute folder that list_files returned"`
	Path   string `json:"path" jsonschema:"the copy to delete"`
	Size   int64  `json:"size" jsonschema:"its size in bytes as hash_file returned it"`
	SHA256 string `json:"sha256" jsonschema:"its SHA-256 as hash_file returned it"`
	SameAs string `json:"same_as" jsonschema:"the path of the file with the same content that is kept"`
}

// Deleted says what is gone and how much space that frees.
type Deleted struct {
	Deleted string `json:"deleted"`
	Kept    string `json:"kept"`
	Freed   int64  `json:"freed"`
}

// homeKey is the key of the session's state that keeps the home of its first call.
const homeKey = "janitor_home"

// home is the folder that holds every folder the janitor may look at.
type home struct{ *confined.Folder }

// enter opens it. What is opened is closed by [home.leave].
func enter(files tool.Files) (home, error) {
	f, err := confined.Home(files)
	return home{f}, err
}

func (h home) leave() { _ = h.Root.Close() } // it was only read

// enterFor opens the home of a session. One that began at a server, in the lab's
// folder, stays there when the owner of the data goes on with it in a terminal,
// where the program's home is wider.
func enterFor(c *tool.Call) (home, error) {
	files := c.Files()
	kept, known, err := tool.State[string](c, homeKey)
	if err == nil && !known {
		err = c.Replace(homeKey, files.Home)
	}
	if err != nil {
		return home{}, err
	}
	if known && kept == files.Folder {
		files.Home = files.Folder
	}
	return enter(files)
}

// Tools returns the janitor's tools.
func Tools() []tool.Tool {
	return []tool.Tool{
		tool.Define(tool.Spec[ListIn]{
			Name: ListFiles,
			Description: "List the files of a folder and its subfolders that may be copies: those whose size occurs more than once. " +
				"Hidden files, symlinks and empty files are left out; hard links are listed apart, for they are not copies; " +
				"leftovers are files that a deletion which was stopped moved aside.",
			Effect: tool.ReadOnly,
		}, func(ctx context.Context, c *tool.Call, in ListIn) (Listing, error) {
			h, err := enterFor(c)
			if err != nil {
				return Listing{}, err
			}
			defer h.leave()
			return h.scan(ctx, in.Folder, maxEntries)
		}),
		tool.Define(tool.Spec[HashIn]{
			Name:        HashFile,
			Description: "Return size and SHA-256 of a file's content. Files with the same of both are copies of each other.",
			Effect:      tool.ReadOnly,
		}, func(ctx context.Context, c *tool.Call, in HashIn) (Hash, error) {
			h, err := enterFor(c)
			if err != nil {
				return Hash{}, err
			}
			defer h.leave()
			return h.hashFile(ctx, in)
		}),
		tool.Define(tool.Spec[DeleteIn]{
			Name: DeleteFile,
			Description: "Delete one copy of a file; a person is asked before. It is refused if the file is no longer the one that " +
				"was hashed, or if the one to keep does not have the same content any more.",
			Effect:  tool.SideEffect,
			Approve: tool.Always[DeleteIn],
		}, func(ctx context.Context, c *tool.Call, in DeleteIn) (Deleted, error) {
			h, err := enterFor(c)
			if err != nil {
				return Deleted{}, err
			}
			defer h.leave()
			if err := h.remove(ctx, in, c.IdempotencyKey()); err != nil {
				return Deleted{}, err
			}
			return Deleted{Deleted: in.Path, Kept: in.SameAs, Freed: in.Size}, nil
		}),
	}
}
