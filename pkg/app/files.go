package app

import (
	"os"
	"path/filepath"

	"github.com/adjourn/adjourn/pkg/tool"
)

// Memory is the data file that lives in one process alone.
const Memory = ":memory:"

// labFolder is where tools write files when nobody says otherwise: a folder that
// holds nothing else.
const labFolder = "adjourn-lab"

// FilesBeside returns where tools may have files, for a program with this data
// file ("" for none). Folder is the one named, else adjourn-lab beside the data, or
// beside its folder where that is ours alone: the same for every program that works
// on the data, so that a session goes on anywhere. In a person's own terminal tools
// may also look after the files of the folder that holds it; where others may call
// (served) they may not.
func FilesBeside(data, folder string, served bool) tool.Files {
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
		files.Folder = filepath.Join(home, labFolder)
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
