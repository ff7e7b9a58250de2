package tool

// Files says where the tools of a program may have files. It is decided when the
// program starts, and never by who calls a tool.
type Files struct {
	// Folder is where tools write files of their own, an absolute path. It is made
	// when it is first needed. Empty: they may have none.
	Folder string
	// Home holds the files that tools may look after: in a person's own terminal the
	// folder of their work, the same as Folder where others may call.
	Home string
	// Data is the path of the program's data file, "" where it has none; what is named
	// after it lies beside it, also what lets callers in. DataFolder is its folder where
	// that holds nothing else, else "". No tool reaches any of it.
	Data, DataFolder string
}

// Files returns where the tool may have files.
func (c *Call) Files() Files { return c.cfg.Files }
