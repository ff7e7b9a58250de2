package janitor

import (
	"context"
	"fmt"
	"os"

	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
)

// remove deletes the copy that in names, if it is still the file that was shown
// and the original still exists with the same content. Whatever else happens at
// the same time, the last file with this content is never deleted.
func remove(ctx context.Context, home deletion.Folder, in DeleteIn, id string) error {
	root, err := home.Open(in.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	duplicate, err := shown(ctx, home, root, in.Path, in)
	if err != nil {
		return err
	}
	defer duplicate.Close()
	original, err := shown(ctx, home, root, in.SameAs, in)
	if err != nil {
		return fmt.Errorf("the original %w", err)
	}
	defer original.Close()
	if os.SameFile(duplicate.Info, original.Info) || duplicate.Linked {
		return fmt.Errorf("%s: is the file to keep, or has another name too (a hard link): deleting it frees nothing", in.Path)
	}
	return duplicate.Delete(id, original)
}

// shown opens a file, if it is what was shown.
func shown(ctx context.Context, home deletion.Folder, root *os.Root, path string, in DeleteIn) (*deletion.Place, error) {
	p, err := home.Read(ctx, root, path)
	switch {
	case err != nil:
		return nil, err
	case p.Info.Size() != in.Size:
		err = fmt.Errorf("%s: is no longer the file that was shown: it has %d bytes, not %d", path, p.Info.Size(), in.Size)
	case p.SHA256 != in.SHA256:
		err = fmt.Errorf("%s: is no longer the file that was shown: its content has changed", path)
	default:
		return p, nil
	}
	p.Close()
	return nil, err
}
