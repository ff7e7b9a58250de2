package janitor

import (
	"context"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The names of the tools.
const (
	FindCopies = "find_copies"
	DeleteFile = "delete_file"
)

// FindIn names a folder.
type FindIn struct {
	Folder string `json:"folder" jsonschema:"the folder to look at; a relative path starts at the folder that holds them all"`
}

// Found is what has the same content. Paths are relative to the folder, with slashes.
type Found struct {
	// Folder is the absolute path, which delete_file wants.
	Folder string `json:"folder"`
	Sets   []Set  `json:"sets"`
	// Skipped are files and folders that could not be looked at, with the reason.
	Skipped []string `json:"skipped,omitempty"`
	// Leftovers are files that a deletion moved aside and could not delete, because
	// it was stopped. Each may be the last one with its content.
	Leftovers []string `json:"leftovers,omitempty"`
	// Scanned counts the files looked at. Hidden ones and symlinks are left alone.
	Scanned int `json:"scanned"`
}

// Set is files with the same content.
type Set struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Keep are the files to keep: those with a second name (a hard link), because
	// deleting them frees nothing, else the one with the shortest path.
	Keep   []string `json:"keep"`
	Copies []string `json:"copies"`
}

// DeleteIn names a copy, what it was when it was shown, and what is kept.
type DeleteIn struct {
	Folder string `json:"folder" jsonschema:"the absolute folder that find_copies returned"`
	Path   string `json:"path" jsonschema:"the copy to delete"`
	Size   int64  `json:"size" jsonschema:"its size in bytes as find_copies returned it"`
	SHA256 string `json:"sha256" jsonschema:"its SHA-256 as find_copies returned it"`
	SameAs string `json:"same_as" jsonschema:"the path of the file with the same content that is kept"`
}

// homeKey is the key of the session's state that keeps the home of its first call.
const homeKey = "janitor_home"

// inHome opens the folder that holds every folder the janitor may look at, and works
// in it. A session whose first call ran at a server, in the lab's folder, stays there
// when the owner of the data goes on with it in a terminal, where the program's home
// is wider. If the server stopped before that call, the home is that of the process
// which makes it: see docs/decisions.md.
func inHome[In, Out any](work func(context.Context, deletion.Folder, *tool.Call, In) (Out, error)) func(context.Context, *tool.Call, In) (Out, error) {
	return func(ctx context.Context, c *tool.Call, in In) (out Out, err error) {
		files := c.Files()
		kept, known, err := tool.State[string](c, homeKey)
		if err == nil && !known {
			err = c.Replace(homeKey, files.Home)
		}
		if err != nil {
			return out, err
		}
		if known && kept == files.Folder {
			files.Home = files.Folder
		}
		home, err := confined.Home(files)
		if err != nil {
			return out, err
		}
		defer func() { _ = home.Root.Close() }() // it was only read
		return work(ctx, deletion.Folder{Folder: home}, c, in)
	}
}

// Tools returns the janitor's tools.
func Tools() []tool.Tool {
	return []tool.Tool{
		tool.Define(tool.Spec[FindIn]{
			Name: FindCopies,
			Description: "Find the files of a folder and its subfolders that have the same content. " +
				"Hidden files, symlinks and empty files are left out; leftovers are files that a deletion which was stopped moved aside.",
			Effect:  tool.ReadOnly,
			Timeout: time.Hour, // it reads every file that may be a copy
		}, inHome(func(ctx context.Context, home deletion.Folder, _ *tool.Call, in FindIn) (Found, error) {
			return find(ctx, home, in.Folder, maxEntries)
		})),
		tool.Define(tool.Spec[DeleteIn]{
			Name: DeleteFile,
			Description: "Delete one copy of a file; a person is asked before. It is refused if the file is no longer the one that " +
				"was shown, or if the one to keep does not have the same content any more. It returns what was deleted.",
			Effect:  tool.SideEffect,
			Approve: tool.Always[DeleteIn],
			Show: func(in DeleteIn) tool.Preview {
				return tool.Preview{Title: fmt.Sprintf("Delete %s (%d bytes), and keep %s, which has the same content", in.Path, in.Size, in.SameAs), Risk: tool.RiskMedium}
			},
		}, inHome(func(ctx context.Context, home deletion.Folder, c *tool.Call, in DeleteIn) (DeleteIn, error) {
			return in, remove(ctx, home, in, c.IdempotencyKey())
		})),
	}
}
