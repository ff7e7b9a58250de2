//go:build unix

package owned

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecret(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "secret"))
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // nothing is written
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o610, 0o666} {
		require.NoError(t, f.Chmod(mode))
		err := Secret(f)
		require.ErrorIs(t, err, ErrOpen, mode)
		require.ErrorContains(t, err, "chmod 600 "+f.Name())
	}
	for _, mode := range []os.FileMode{0o600, 0o400, 0o700} {
		require.NoError(t, f.Chmod(mode))
		require.NoError(t, Secret(f), mode)
	}
	require.NoError(t, f.Chmod(0o600))
	if f.Chown(65534, -1) == nil { // only root can give a file away
		require.ErrorIs(t, Secret(f), ErrForeign)
	}
}
