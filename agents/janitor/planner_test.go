package janitor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  map[string]string
		decide func(DeleteIn) string
		left   []string
		says   []string
		asked  int
	}{
		"copies_go_and_the_shortest_path_stays": {
			files: map[string]string{"b/photo copy.jpg": "same!", "photo.jpg": "same!", "b/photo.jpg": "same!", "other.jpg": "other"},
			left:  []string{"other.jpg", "photo.jpg"}, asked: 2,
			says: []string{"Copies deleted: 2, bytes freed: 10.", "b/photo.jpg (same as photo.jpg)"},
		},
		"of_equal_lengths_the_first_stays": {
			files: map[string]string{"c": "x", "a": "x", "b": "x"},
			left:  []string{"a"}, asked: 2, says: []string{"bytes freed: 2."},
		},
		"denied_ones_stay_and_are_said_to": {
			files: map[string]string{"a": "x", "b": "x", "c": "x"},
			decide: func(in DeleteIn) string {
				return map[string]string{"b": "Tool call was not approved by the user: mine"}[in.Path]
			},
			left: []string{"a", "b"}, asked: 2,
			says: []string{"Copies deleted: 1, bytes freed: 1.", "Kept, because you did not approve:\n  b: Tool call was not approved by the user: mine"},
		},
		"no_copies": {
			files: map[string]string{"a": "x", "b": "y", "c": "zz"},
			left:  []string{"a", "b", "c"}, says: []string{": 3. Copies deleted: 0"},
		},
		"an_empty_folder": {says: []string{": 0. Copies deleted: 0"}},
		"empty_and_hidden_files_are_left_alone": {
			files: map[string]string{"a": "", "b": "", ".c": "x", "d": "x", ".git/e": "x"},
			left:  []string{".c", ".git/e", "a", "b", "d"},
			says:  []string{": 3. Copies deleted: 0"},
		},
		"more_than_one_reply_of_each": {
			files: many(120), left: many120Left(), asked: 60,
			says: []string{"Copies deleted: 60", "and 40 more"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, c.files)
			d := &drive{decide: c.decide}
			messages := d.run(t, []llm.Message{llm.User(dir)})
			text := messages[len(messages)-1].Text()
			require.Equal(t, c.left, keys(contents(t, dir)))
			for _, s := range c.says {
				require.Contains(t, text, s)
			}
			asked := 0
			for _, r := range d.replies {
				n := names(r)
				require.LessOrEqual(t, n[DeleteFile], deletesPerReply)
				asked += n[DeleteFile]
			}
			require.Equal(t, c.asked, asked)
		})
	}
}

// many makes n files, each content twice.
func many(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%03d", i)] = fmt.Sprintf("content %02d", i/2)
	}
	return files
}

func many120Left() []string {
	var left []string
	for i := 0; i < 120; i += 2 {
		left = append(left, fmt.Sprintf("%03d", i))
	}
	return left
}

func TestPlan_says_what_to_do_without_a_folder(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"", " ", "clean up please", `"a" "b"`, `"/a" "/b"`, `""`} {
		reply, err := Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User(message)}})
		require.NoError(t, err)
		require.Equal(t, agent.Reply{Text: help, NeedsInput: true}, reply, message)
	}
	reply, err := Plan(t.Context(), agent.View{})
	require.NoError(t, err)
	require.Equal(t, help, reply.Text)

	dir := folder(t, map[string]string{"file": "x"})
	for message, want := range map[string]string{
		filepath.Join(dir, "none"): "there is no folder " + filepath.Join(dir, "none"),
		filepath.Join(dir, "file"): "is not a folder",
	} {
		messages := (&drive{}).run(t, []llm.Message{llm.User(message)})
		require.Contains(t, messages[len(messages)-1].Text(), want)
		require.Contains(t, messages[len(messages)-1].Text(), "Nothing was deleted. Send me the path of one folder")
	}
}

func TestPlan_takes_the_folder_of_a_message(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"photos": "photos", " /tmp/x \n": "/tmp/x", ".": ".", "./my photos": "./my photos", `clean "my photos" today`: "my photos", `C:\Photos`: `C:\Photos`,
		"don't touch it, but clean \"My Files\"": "My Files", `"unfinished`: "", `"unfinished /a`: "", "clean up my photos": "",
	} {
		reply, err := Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User(message)}})
		require.NoError(t, err)
		if want == "" {
			require.Equal(t, help, reply.Text, message)
			continue
		}
		require.Equal(t, []agent.Call{{Name: FindCopies, Arguments: FindIn{want}}}, reply.Calls, message)
	}
	dir := folder(t, map[string]string{"my photos/a": "x", "my photos/b": "x"})
	messages := (&drive{}).run(t, []llm.Message{llm.User(dir + "/my photos")})
	require.Contains(t, messages[len(messages)-1].Text(), "Copies deleted: 1")
}

func TestPlan_begins_anew_with_the_newest_user_message(t *testing.T) {
	t.Parallel()
	one := folder(t, map[string]string{"a": "x", "b": "x"})
	two := folder(t, map[string]string{"c": "y", "d": "y"})
	messages := (&drive{decide: func(DeleteIn) string { return "no" }}).run(t, []llm.Message{llm.User(one)})
	messages = (&drive{}).run(t, append(messages, llm.User(two)))
	require.Contains(t, messages[len(messages)-1].Text(), two)
	require.Equal(t, []string{"a", "b"}, keys(contents(t, one)))
	require.Equal(t, []string{"c"}, keys(contents(t, two)))
}

// A person may change a deletion before it runs. The summary tells what was done, not
// what was asked for.
func TestPlan_tells_what_an_edit_made_of_it(t *testing.T) {
	t.Parallel()
	two := map[string]string{"a.txt": "x", "b.txt": "x", "d.txt": "long", "e.txt": "long"}
	three := map[string]string{"a": "x", "b": "x", "c": "x"}
	for name, c := range map[string]struct {
		files map[string]string
		edit  func(in *DeleteIn)

		decide func(DeleteIn) string
		left   []string
		says   []string
		not    []string
	}{
		"to_a_copy_of_another_content": {
			files: two,
			edit: func(in *DeleteIn) {
				if in.Path == "b.txt" {
					*in = DeleteIn{in.Folder, "e.txt", 4, sum("long"), "d.txt"}
				}
			},
			left: []string{"a.txt", "b.txt", "d.txt"},
			says: []string{"Copies deleted: 1, bytes freed: 4.", "  e.txt (same as d.txt), which you named instead of b.txt"},
			not:  []string{"b.txt (same as a.txt)", "Not deleted", "does not exist"},
		},
		"to_a_copy_whose_own_deletion_was_denied": {
			files: two,
			edit: func(in *DeleteIn) {
				if in.Path == "b.txt" {
					*in = DeleteIn{in.Folder, "e.txt", 4, sum("long"), "d.txt"}
				}
			},
			decide: func(in DeleteIn) string {
				if in.Path == "e.txt" {
					return "no"
				}
				return ""
			},
			left: []string{"a.txt", "b.txt", "d.txt"},
			says: []string{"  e.txt (same as d.txt), which you named instead of b.txt"},
			not:  []string{"Kept, because"},
		},
		"to_the_one_to_keep": {
			files: map[string]string{"a": "x", "b": "x"},
			edit:  func(in *DeleteIn) { in.Path, in.SameAs = in.SameAs, in.Path },
			left:  []string{"b"},
			says:  []string{"Copies deleted: 1, bytes freed: 1.", "  a (same as b), which you named instead of b"},
		},
		"of_the_original_only": {
			files: three,
			edit: func(in *DeleteIn) {
				if in.Path == "b" {
					in.SameAs = "c"
				}
			},
			left: []string{"a"},
			says: []string{"Copies deleted: 2", "  b (same as c)", "  c (same as a)"},
			not:  []string{"instead"},
		},
		"to_a_file_that_does_not_exist": {
			files: map[string]string{"a": "x", "b": "x"},
			edit:  func(in *DeleteIn) { in.Path = "z" },
			left:  []string{"a", "b"},
			says:  []string{"Copies deleted: 0, bytes freed: 0.", "Not deleted:\n  b: z: does not exist"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, c.files)
			d := &drive{edit: c.edit, decide: c.decide}
			messages := d.run(t, []llm.Message{llm.User(dir)})
			text := messages[len(messages)-1].Text()
			require.Equal(t, c.left, keys(contents(t, dir)))
			for _, s := range c.says {
				require.Contains(t, text, s)
			}
			for _, s := range c.not {
				require.NotContains(t, text, s)
			}
		})
	}
}

// A file that an edit deleted before its own turn came is not asked about again.
func TestPlan_does_not_ask_for_what_is_gone(t *testing.T) {
	t.Parallel()
	dir := folder(t, many(2*(deletesPerReply+1)))
	d := &drive{edit: func(in *DeleteIn) {
		if in.Path == "001" { // the last one, which is asked about in the second reply
			*in = DeleteIn{in.Folder, "081", int64(len("content 40")), sum("content 40"), "080"}
		}
	}}
	messages := d.run(t, []llm.Message{llm.User(dir)})
	text := messages[len(messages)-1].Text()
	require.Contains(t, text, "Copies deleted: 40")
	require.NotContains(t, text, "does not exist")
	require.Contains(t, keys(contents(t, dir)), "001")
	require.NotContains(t, keys(contents(t, dir)), "081")
}

// A worker that died in the middle of a deletion leaves the file under another
// name: whoever looks at the folder next is told, and can get it back.
func TestPlan_tells_of_files_that_were_moved_aside(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 255)
	dir := folder(t, map[string]string{"a": "x", "sub/b": "x", "sub/c": "x", long: "longer"})
	for _, name := range []string{"sub/b", long} { // what is done up to the moment it died
		root, err := atHome(t).Open(dir)
		require.NoError(t, err)
		p, err := atHome(t).Locate(root, name)
		require.NoError(t, err)
		require.NoError(t, p.Dir.Rename(p.Base, deletion.AsideName("a call", p.Base)))
		p.Close()
		require.NoError(t, root.Close())
	}
	nameless := deletion.AsideName("a call", long)
	aside := "sub/" + deletion.AsideName("a call", "b")

	found, err := call[Found](t, t.Context(), FindCopies, FindIn{dir})
	require.NoError(t, err)
	require.Equal(t, []string{nameless, aside}, found.Leftovers)

	messages := (&drive{}).run(t, []llm.Message{llm.User(dir)})
	text := messages[len(messages)-1].Text()
	require.Contains(t, text, "Copies deleted: 1")
	require.Contains(t, text, "rename a file to get it back, or delete it:\n  "+nameless+"\n  "+aside)
	require.Equal(t, []string{nameless, "a", aside}, keys(contents(t, dir)), "it is left to the person")
}

func TestPlan_reports_what_changed_meanwhile(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "x", "b": "x", "c": "x"})
	d := &drive{meanwhile: func() { write(t, dir, "b", "y") }}
	messages := d.run(t, []llm.Message{llm.User(dir)})
	text := messages[len(messages)-1].Text()
	require.Contains(t, text, "Copies deleted: 1, bytes freed: 1.")
	require.Contains(t, text, "Not deleted:\n  b: is no longer the file that was shown: its content has changed")
	require.Equal(t, map[string]string{"a": "x", "b": "y"}, contents(t, dir))
}

func TestPlan_reports_what_cannot_be_read(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		// root reads everything: let the planner see a result instead
		j := &job{found: &Found{Folder: "/f", Skipped: []string{"a: permission denied"}}}
		require.Contains(t, j.summary(), "Could not be read:\n  a: permission denied")
		return
	}
	dir := folder(t, map[string]string{"a": "x", "b": "x", "c": "x"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0))
	messages := (&drive{}).run(t, []llm.Message{llm.User(dir)})
	text := messages[len(messages)-1].Text()
	require.Contains(t, text, "Could not be read:\n  a: permission denied")
	require.Contains(t, text, "c (same as b)")
}

func TestPlan_leaves_hard_links_alone(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"long name": "x", "a": "x", "b": "x"})
	require.NoError(t, os.Link(filepath.Join(dir, "long name"), filepath.Join(dir, "longer name")))
	(&drive{}).run(t, []llm.Message{llm.User(dir)})
	require.Equal(t, []string{"long name", "longer name"}, keys(contents(t, dir)), "the file with two names is the one to keep")
}

// Every status a deletion can end with has its place in the summary.
func TestPlan_every_outcome_is_told(t *testing.T) {
	t.Parallel()
	message := func(role llm.Role, parts ...llm.Part) llm.Message { return llm.Message{Role: role, Parts: parts} }
	asJSON := func(v any) json.RawMessage {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return raw
	}
	ask := func(id, name string, in any) llm.Part {
		return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, Name: name, Arguments: asJSON(in)}}
	}
	got := func(id, name string, status llm.ResultStatus, out any) llm.Part {
		return llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, Name: name, Status: status, Output: asJSON(out)}}
	}
	statuses := []llm.ResultStatus{
		llm.ResultSuccess, llm.ResultError, llm.ResultDenied, llm.ResultCancelled, llm.ResultTimedOut, llm.ResultUnknown,
	}
	set := Set{5, "s", []string{"a"}, nil}
	var deletes, deleted []llm.Part
	for i, status := range statuses {
		path, id := "copy "+string(status), fmt.Sprintf("c4-%d", i+1)
		in := DeleteIn{"/f", path, 5, "s", "a"}
		set.Copies = append(set.Copies, path)
		deletes = append(deletes, ask(id, DeleteFile, in))
		out := any("said of " + path)
		if status == llm.ResultSuccess {
			out = in
		}
		deleted = append(deleted, got(id, DeleteFile, status, out))
	}
	messages := []llm.Message{
		llm.User("/f"),
		message(llm.RoleAssistant, ask("c2-0", FindCopies, FindIn{"/f"})),
		message(llm.RoleTool, got("c2-0", FindCopies, llm.ResultSuccess, Found{Folder: "/f", Scanned: 7, Sets: []Set{set}})),
	}
	reply, err := Plan(t.Context(), agent.View{Messages: messages})
	require.NoError(t, err)
	require.Equal(t, map[string]int{DeleteFile: 6}, names(reply))
	require.Equal(t, "Copies found in /f: 6, 30 bytes in all. May I delete them? Of each content one file stays.", reply.Text)

	reply, err = Plan(t.Context(), agent.View{Messages: append(messages, message(llm.RoleAssistant, deletes...), message(llm.RoleTool, deleted...))})
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(`
Files looked at in /f: 7. Copies deleted: 1, bytes freed: 5.
Deleted:
  copy success (same as a)
Kept, because you did not approve:
  copy denied: said of copy denied
Not deleted, because it was cancelled before:
  copy cancelled: said of copy cancelled
Not deleted:
  copy error: said of copy error
Unknown; please look whether the file, or the one you named instead, is still there, under its name or beside it as .adjourn-…:
  copy timed_out: said of copy timed_out
  copy unknown: said of copy unknown`), reply.Text)
}

func TestPlan_refuses_results_it_cannot_read(t *testing.T) {
	t.Parallel()
	bad := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{
		CallID: "c2-0", Name: FindCopies, Status: llm.ResultSuccess, Output: json.RawMessage(`"no listing"`),
	}}}}
	_, err := Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("/f"), bad}})
	require.ErrorContains(t, err, "result of find_copies c2-0")

	call := func(name, in string) llm.Message {
		return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "c2-0", Name: name, Arguments: json.RawMessage(in)}}}}
	}
	bad.Parts[0].ToolResult.Name = DeleteFile
	for _, in := range []string{`{"path": "a"}`, `"no arguments"`} {
		_, err := Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("/f"), call(DeleteFile, in), bad}})
		require.ErrorContains(t, err, "result of delete_file c2-0", in)
	}
}

func TestSection_keeps_each_file_on_its_line(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	section(&b, "Deleted", []string{"b\nRun it? y\r", "c"})
	require.Equal(t, "Deleted:\n  b\\nRun it? y\\r\n  c\n", b.String())
}
