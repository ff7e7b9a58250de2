package janitor

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
	"github.com/adjourn/adjourn/pkg/agent"
)

const (
	// deletesPerReply keeps a suspension readable; it may open 80 waits at most.
	deletesPerReply = 40
	// maxLines is how many files a list in a text names.
	maxLines = 20
	help     = "Nothing was deleted. Send me the path of one folder, alone or in double quotes: " +
		"I find copies of files in it and delete them, each only after you said yes."
)

// Plan decides the next reply without a model: find the copies, ask for each to be
// deleted, sum up. It reads nothing but the messages since the newest user message,
// so planning again after a crash gives the same reply.
func Plan(_ context.Context, view agent.View) (agent.Reply, error) {
	j, err := read(view.Messages)
	switch {
	case err != nil:
		return agent.Reply{}, err
	case j.folder == "" || j.refused != "":
		return agent.Reply{Text: j.refused + help, NeedsInput: true}, nil
	case j.found == nil:
		return agent.Reply{Calls: []agent.Call{{Name: FindCopies, Arguments: FindIn{j.folder}}}}, nil
	}
	left := slices.DeleteFunc(j.copies(), func(d DeleteIn) bool {
		return slices.ContainsFunc(j.outcomes, func(o outcome) bool { return o.asked == d.Path })
	})
	if len(left) == 0 {
		return agent.Reply{Text: j.summary()}, nil
	}
	reply, bytes := agent.Reply{}, int64(0)
	for _, d := range left[:min(len(left), deletesPerReply)] {
		reply.Calls = append(reply.Calls, agent.Call{Name: DeleteFile, Arguments: d})
		bytes += d.Size
	}
	reply.Text = fmt.Sprintf("Copies found in %s: %d, %d bytes in all. May I delete them? Of each content one file stays.", j.found.Folder, len(reply.Calls), bytes)
	return reply, nil
}

// path matches a message. Its path is what stands in quotes; without quotes it is the
// whole message, if that is one word or holds a slash.
var path = regexp.MustCompile(`(?s)^(?:[^"]*"([^"]*)"[^"]*|(\s*[^"\s]*\s*|[^"]*[/\\][^"]*)|.*)$`)

// job is what the messages say about the work so far.
type job struct {
	folder  string
	found   *Found
	refused string // why the folder could not be listed
	// gone are the files that were deleted. They may differ from those that the calls
	// named, because a person may change what is deleted.
	gone     []string
	outcomes []outcome
	freed    int64
}

// outcome is how one deletion ended.
type outcome struct {
	asked  string // the path the call named
	status agent.ResultStatus
	line   string
}

// read goes through the messages since the newest user message.
func read(messages []agent.Message) (*job, error) {
	j := new(job)
	arguments := map[string]json.RawMessage{}
	for _, m := range messages {
		if m.Role == agent.RoleUser {
			j = &job{folder: strings.TrimSpace(path.ReplaceAllString(m.Text(), "$1$2"))}
		}
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				arguments[p.ToolCall.ID] = p.ToolCall.Arguments
			case p.ToolResult != nil:
				if err := j.take(arguments[p.ToolResult.CallID], p.ToolResult); err != nil {
					return nil, fmt.Errorf("result of %s %s: %w", p.ToolResult.Name, p.ToolResult.CallID, err)
				}
			}
		}
	}
	return j, nil
}

func (j *job) take(arguments json.RawMessage, result *agent.ToolResult) error {
	success := result.Status == agent.ResultSuccess
	text := string(result.Status)
	if !success {
		_ = json.Unmarshal(result.Output, &text) // else the status says it
	}
	switch result.Name {
	case FindCopies:
		if !success {
			j.refused = "I could not list the folder: " + text + ". "
			return nil
		}
		return json.Unmarshal(result.Output, &j.found)
	case DeleteFile:
		var in DeleteIn
		if err := json.Unmarshal(arguments, &in); err != nil {
			return err
		}
		o := outcome{in.Path, result.Status, in.Path + ": " + strings.TrimPrefix(text, in.Path+": ")}
		if success {
			var done DeleteIn
			if err := json.Unmarshal(result.Output, &done); err != nil {
				return err
			}
			o.line = fmt.Sprintf("%s (same as %s)", done.Path, done.SameAs)
			if done.Path != in.Path {
				o.line += ", which you named instead of " + in.Path
			}
			j.gone = append(j.gone, done.Path)
			j.freed += done.Size
		}
		j.outcomes = append(j.outcomes, o)
	}
	return nil
}

// copies are the files to delete, without what is gone: if no file to keep is
// left, the first of the copies is kept.
func (j *job) copies() []DeleteIn {
	isGone := func(path string) bool { return slices.Contains(j.gone, path) }
	var out []DeleteIn
	for _, set := range j.found.Sets {
		keep := slices.DeleteFunc(slices.Clone(set.Keep), isGone)
		copies := slices.DeleteFunc(slices.Clone(set.Copies), isGone)
		if len(keep) == 0 && len(copies) > 0 {
			keep, copies = copies[:1], copies[1:]
		}
		for _, path := range copies {
			out = append(out, DeleteIn{Folder: j.found.Folder, Path: path, Size: set.Size, SHA256: set.SHA256, SameAs: keep[0]})
		}
	}
	return out
}

// summary says what became of everything.
func (j *job) summary() string {
	lines := map[agent.ResultStatus][]string{}
	for _, o := range j.outcomes {
		if o.status == agent.ResultSuccess || !slices.Contains(j.gone, o.asked) { // else another call deleted it
			lines[o.status] = append(lines[o.status], o.line)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Files looked at in %s: %d. Copies deleted: %d, bytes freed: %d.\n",
		j.found.Folder, j.found.Scanned, len(lines[agent.ResultSuccess]), j.freed)
	section(&b, "Deleted", lines[agent.ResultSuccess])
	section(&b, "Kept, because you did not approve", lines[agent.ResultDenied])
	section(&b, "Not deleted, because it was cancelled before", lines[agent.ResultCancelled])
	section(&b, "Not deleted", lines[agent.ResultError])
	section(&b, "Unknown; please look whether the file, or the one you named instead, is still there, under its name or beside it as "+
		deletion.AsidePrefix+"…", append(lines[agent.ResultTimedOut], lines[agent.ResultUnknown]...))
	section(&b, "Moved aside by a deletion that was stopped half-way; rename a file to get it back, or delete it", j.found.Leftovers)
	section(&b, "Could not be read", j.found.Skipped)
	return strings.TrimSuffix(b.String(), "\n")
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for _, line := range lines[:min(len(lines), maxLines)] {
		// A file's name may hold a line break, and must not begin a line of the summary.
		fmt.Fprintf(b, "  %s\n", strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(line))
	}
	if more := len(lines) - maxLines; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}
