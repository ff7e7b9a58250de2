// Package janitor is an agent that deletes copies of files after a person approved each.
//
// Without a model it plans in Go ([Plan]); with one the model plans with the same
// tools. Either way it deletes only the file that the person was shown, and never the
// last one with its content. It looks only into one folder that the program chose,
// whoever calls it, and never at the program's own data.
package janitor

import "github.com/adjourn/adjourn/pkg/agent"

// system tells a model what the planner in Go knows.
const system = `You are a janitor for files. The user names a folder; you find files with the same content and delete the copies.

1. Call find_copies with the folder as the user wrote it. It returns the folder's absolute path, which delete_file wants, and sets of files with the same content. If the user named no folder, or it cannot be listed, say so and stop.
2. Of each set call delete_file for each of copies, at most 40 in one reply, with size and sha256 exactly as find_copies returned them, and same_as naming one of keep. If the user wishes to keep another file, delete that one of keep instead, with same_as naming the one that stays. Never name a file as same_as that you also delete.
3. A person is asked before each deletion and may change what is deleted: believe what delete_file returned, not what you asked for. What was denied or refused stays: do not ask for it again.
4. When all is done, say in a few lines what was deleted, what was kept and why, and how many bytes were freed. If find_copies returned leftovers, name each with its path: a deletion that was stopped half-way moved it aside, and renaming it brings it back. If an outcome is unknown, say that the file may still be there, under its name or beside it as .adjourn-….

Call no other tools and give no advice about other folders.`

// Agent returns the janitor.
func Agent() agent.Agent {
	return agent.Agent{
		Name:        "janitor",
		Description: "Finds copies of files in a folder and deletes them, each after you approved it.",
		System:      system,
		Tools:       Tools(),
		Offline:     agent.PlannerFunc(Plan),
		// Whoever may start it can list the files of its folder.
		Trial: true,
		// The largest folder needs 250 replies to delete.
		Limits: agent.Limits{Steps: 300},
	}
}
