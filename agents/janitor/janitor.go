// Package janitor is an agent that deletes copies of files after a person approved each.
//
// Without a model it plans in Go ([Plan]); with one the model plans with the same
// tools. Either way no file is deleted that is not the one the person was shown,
// and never the last one with its content. It looks at one folder of the program's
// choice, whoever asks, and what lies in it; never at the program's own data.
package janitor

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/adjourn/adjourn/pkg/agent"
)

// system tells a model what the planner in Go knows.
const system = `You are a janitor for files. The user names a folder; you find files with the same content and delete the copies.

1. Call list_files with the folder as the user wrote it. It returns the folder's absolute path, which the other tools want, and the files whose size occurs more than once. If the user named no folder, or it cannot be listed, say so and stop.
2. Call hash_file for each listed file, many at once (at most 50 in one reply). Files with the same size and sha256 are copies of each other. Never conclude it from names or sizes.
3. Of each set of copies choose the one to keep: as the user wished; else a file marked as linked; else the shortest path, then the first in alphabetical order. Call delete_file for each of the others, at most 40 in one reply, with same_as naming the one you keep, and size and sha256 exactly as hash_file returned them. Never name a file as same_as that you also delete. Do not delete files marked as linked: it frees nothing.
4. A person is asked before each deletion and may change what is deleted: believe what delete_file returned, not what you asked for. What was denied stays: do not ask for it again. What was refused because a file has changed stays too.
5. When all is done, say in a few lines what was deleted, what was kept and why, and how many bytes were freed. If list_files returned leftovers, name each with its path: a deletion that was stopped half-way moved it aside, and renaming it brings it back. If an outcome is unknown, say that the file may still be there, under its name or beside it as .adjourn-….

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
		// The largest folder needs 200 replies to hash and 250 to delete.
		Limits: agent.Limits{Steps: 1000},
	}
}

// digest makes a short name of a key that may hold any character.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:digestLen/2])
}

// digestLen is how long a [digest] is.
const digestLen = 16
