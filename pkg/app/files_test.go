package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/tool"
)

func TestFilesBeside(t *testing.T) {
	t.Parallel()
	ours, lab := "/p/.adjourn/adjourn.db", filepath.FromSlash("/p/adjourn-lab")
	require.Equal(t, tool.Files{Folder: lab, Home: "/p", Data: ours, DataFolder: "/p/.adjourn"}, app.FilesBeside(ours, "", "adjourn-lab", false))
	require.Equal(t, tool.Files{Folder: lab, Home: lab, Data: ours, DataFolder: "/p/.adjourn"}, app.FilesBeside(ours, "", "adjourn-lab", true),
		"where others may call, the same folder and no other")
	require.Equal(t, tool.Files{Folder: lab, Home: "/p", Data: "/p/try.db"}, app.FilesBeside("/p/try.db", "", "adjourn-lab", false))
	require.Equal(t, tool.Files{Folder: "/files", Home: "/files", Data: "/p/try.db"}, app.FilesBeside("/p/try.db", "/files", "adjourn-lab", false))
	tmp := filepath.Join(os.TempDir(), "adjourn-lab")
	require.Equal(t, tool.Files{Folder: tmp, Home: tmp}, app.FilesBeside("", "", "adjourn-lab", true))
	require.Zero(t, app.FilesBeside(app.Memory, "", "adjourn-lab", false))
}

// The files of a program's own agents are not in a folder that is called after the lab.
func TestFilesFolder(t *testing.T) {
	t.Parallel()
	folder := func(trial bool) string {
		r, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "a", Description: "Says hello.", Planner: agent.Replies(agent.Reply{}), Trial: trial}}})
		require.NoError(t, err)
		require.Equal(t, app.FilesFolder(r), app.FilesFolder(r.Offered(false)), "the same where the agent is not offered")
		return app.FilesFolder(r)
	}
	require.Equal(t, "adjourn-files", folder(false))
	require.Equal(t, "adjourn-lab", folder(true))
}

func TestReadSettings_lab(t *testing.T) {
	t.Parallel()
	read := func(value string) (app.Settings, error) {
		return app.ReadSettings(func(name string) string {
			return map[string]string{"ADJOURN_LAB": value, "ADJOURN_LAB_FOLDER": "/files"}[name]
		})
	}
	for value, want := range map[string]bool{"": false, "false": false, "true": true} {
		s, err := read(value)
		require.NoError(t, err)
		require.Equal(t, want, s.Lab, value)
		require.Equal(t, "/files", s.LabFolder)
	}
	for _, value := range []string{"yes", "1", "TRUE", "on"} {
		s, err := read(value)
		require.ErrorIs(t, err, app.ErrInvalidSetting, value)
		require.False(t, s.Lab)
	}
}
