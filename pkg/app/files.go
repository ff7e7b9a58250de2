package app

import (
	"os"
	"path/filepath"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Memory is the data file that lives in one process alone.
const Memory = ":memory:"

// FilesFolder returns the name of the folder where the tools of a program write files
// when no setting says otherwise; it holds nothing else. Programs that have agents for
// trials, offered or not, share the lab's.
func FilesFolder(registry *agent.Registry) string {
	trial := len(registry.AllWithheld()) > 0
	for _, name := range registry.Names() {
		a, _ := registry.Agent(name)
		trial = trial || a.Trial
	}
	if trial {
		return "adjourn-lab"
	}
	return "adjourn-files"
}

// FilesBeside returns where tools may have files, for a program with this data
// file ("" for none). Folder is the one named, else the one of that name (see
// [FilesFolder]) beside the data, or beside its folder where that is ours alone: the
// same for every program that works on the data, so that a session goes on anywhere. In
// a person's own terminal tools may also look after the files of the folder that holds
// it; where others may call (served) they may not.
func FilesBeside(data, folder, name string, served bool) tool.Files {
	home, alone := "", ""
	switch data {
	case Memory:
		data = ""
	case "":
		home = os.TempDir()
	default:
		data = absolute(data)
		if home = filepath.Dir(data); filepath.Base(home) == filepath.Dir(DefaultData) {
			home, alone = filepath.Dir(home), home
		}
	}
	files := tool.Files{Home: home, Data: data, DataFolder: alone}
	if folder != "" {
		files.Folder = absolute(folder)
		files.Home = files.Folder
	} else if home != "" {
		files.Folder = filepath.Join(home, name)
	}
	if served {
		files.Home = files.Folder
	}
	return files
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
