package labtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// spy is a test that keeps what it is told.
type spy struct {
	testing.TB
	told []string
	gone bool
}

func (s *spy) Helper() {}

func (s *spy) Errorf(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

func (s *spy) Logf(format string, args ...any) { s.Errorf(format, args...) }

func (s *spy) FailNow() { s.gone = true }

func TestTry(t *testing.T) {
	t.Parallel()
	test, trial := &spy{TB: t}, &Trial{Name: "trial 1"}
	trial.Try(test, func() {
		trial.Note("look at %s", "this")
		require.DirExists(t, trial.Dir)
	}, nil)
	require.Empty(t, test.told)
	require.NoDirExists(t, trial.Dir)

	trial = &Trial{Name: "trial 2"}
	trial.Try(test, func() {
		require.NoError(trial, os.WriteFile(filepath.Join(trial.Dir, "kept"), nil, 0o600))
		trial.Note("look at %s", "this")
		trial.Note("and at that")
		trial.Hit()
		require.Equal(trial, 1, trial.Struck(), "struck")
		require.Equal(trial, 2, trial.Struck(), "here it ends")
		trial.Note("never")
	}, func() string { return trial.Notes("") })
	require.FileExists(t, filepath.Join(trial.Dir, "kept"))
	require.NoError(t, os.RemoveAll(trial.Dir))
	require.True(t, trial.Failed())
	require.Len(t, test.told, 1)
	require.Regexp(t, `(?s)^trial 2 failed; its folder is kept: `+trial.Dir+`\n[0-9:.]+ look at this\n[0-9:.]+ and at that\n-- what is wrong\n.*here it ends`, test.told[0])
	require.NotContains(t, test.told[0], "never")
	require.Regexp(t, `^[0-9:.]+ and at that$`, trial.Notes("that"))
}

// Not parallel: it changes the environment of the process.
func TestNumber(t *testing.T) {
	const name = "ADJOURN_CRASH_SEED"
	t.Setenv(name, "")
	require.Equal(t, 7, Number(t, name, 7))
	test := &spy{TB: t}
	require.NotZero(t, Seed(test))
	t.Setenv(name, "42")
	require.Equal(t, 42, Number(t, name, 7))
	require.EqualValues(t, 42, Seed(test))
	require.Equal(t, "ADJOURN_CRASH_SEED=42", test.told[1])
	t.Setenv(name, "many")
	Number(test, name, 7)
	require.True(t, test.gone, "a number that is none is a fault")
}
