package janitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/agent"
)

const (
	// hashesPerReply bounds one step, so that a crash costs little.
	hashesPerReply = 50
	// deletesPerReply keeps a suspension readable; it may open 80 waits at most.
	deletesPerReply = 40
)

// Plan decides the next reply without a model: list the folder, hash what has
// the same size as something else, ask for every copy but the one to keep to be
// deleted, sum up. It reads nothing but the messages since the newest user
// message, so planning again after a crash says the same again.
func Plan(_ context.Context, view agent.View) (agent.Reply, error) {
	j, err := read(view.Messages)
	if err != nil {
		return agent.Reply{}, err
	}
	switch {
	case len(j.folders) == 0:
		return agent.Reply{Text: help, NeedsInput: true}, nil
	case j.listing == nil && len(j.notListed) < len(j.folders):
		return calls("", ListFiles, []ListIn{{Folder: j.folders[len(j.notListed)]}}), nil
	case j.listing == nil:
		return agent.Reply{Text: fmt.Sprintf("I could not list the folder: %s. Nothing was deleted. "+
			"Send me the path of a folder I can read, in quotes if it has spaces.", j.notListed[len(j.notListed)-1]), NeedsInput: true}, nil
	}
	if left := j.unhashed(); len(left) > 0 {
		return calls("", HashFile, first(left, hashesPerReply)), nil
	}
	left := slices.DeleteFunc(j.copies(j.gone), func(d DeleteIn) bool { return j.settled[d.Path] })
	if len(left) == 0 {
		return agent.Reply{Text: j.summary(len(j.copies(nil)))}, nil
	}
	now := first(left, deletesPerReply)
	return calls(offer(now, len(left)-len(now)), DeleteFile, now), nil
}

func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

func calls[In any](text, name string, list []In) agent.Reply {
	reply := agent.Reply{Text: text}
	for _, in := range list {
		reply.Calls = append(reply.Calls, agent.Call{Name: name, Arguments: in})
	}
	return reply
}

// job is what the messages say about the work so far.
type job struct {
	// folders to try, and why those that were tried could not be listed.
	folders   []string
	notListed []string
	listing   *Listing
	// hashes by path, and why there is none.
	hashes     map[string]Hash
	unreadable map[string]string
	// outcomes of the deletions asked for, in their order, and the paths they named.
	outcomes []outcome
	settled  map[string]bool
	// gone are the files that were deleted: not always those that were asked for.
	gone map[string]bool
}

// outcome is how one deletion ended. A person may have changed what was asked
// for, so what was done is read from the result alone.
type outcome struct {
	asked  string // the path the call named
	status agent.ResultStatus
	done   Deleted // of success
	text   string  // of any other status
}

// read goes through the messages since the newest user message.
func read(messages []agent.Message) (*job, error) {
	j := &job{hashes: map[string]Hash{}, unreadable: map[string]string{}, settled: map[string]bool{}, gone: map[string]bool{}}
	begin := len(messages) - 1
	for begin >= 0 && messages[begin].Role != agent.RoleUser {
		begin--
	}
	if begin < 0 {
		return j, nil
	}
	j.folders = foldersIn(messages[begin].Text())
	arguments := map[string]json.RawMessage{}
	for _, m := range messages[begin+1:] {
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
	switch result.Name {
	case ListFiles:
		if result.Status != agent.ResultSuccess {
			j.notListed = append(j.notListed, said(result))
			return nil
		}
		j.listing = new(Listing)
		return json.Unmarshal(result.Output, j.listing)
	case HashFile:
		var in HashIn
		if err := json.Unmarshal(arguments, &in); err != nil {
			return err
		}
		if result.Status != agent.ResultSuccess {
			j.unreadable[in.Path] = said(result)
			return nil
		}
		var h Hash
		if err := json.Unmarshal(result.Output, &h); err != nil {
			return err
		}
		j.hashes[h.Path] = h
		if h.Path != in.Path {
			j.unreadable[in.Path] = h.Path + " was read instead"
		}
	case DeleteFile:
		var in DeleteIn
		if err := json.Unmarshal(arguments, &in); err != nil {
			return err
		}
		o := outcome{asked: in.Path, status: result.Status}
		if result.Status == agent.ResultSuccess {
			if err := json.Unmarshal(result.Output, &o.done); err != nil {
				return err
			}
			j.gone[o.done.Deleted] = true
		} else {
			o.text = said(result)
		}
		j.outcomes = append(j.outcomes, o)
		j.settled[in.Path] = true
	}
	return nil
}

// said is what a result that is no success tells the model.
func said(result *agent.ToolResult) string {
	var text string
	if json.Unmarshal(result.Output, &text) != nil || text == "" {
		return cmp.Or(string(result.Output), string(result.Status))
	}
	return text
}

// unhashed are the listed files whose content nobody has looked at.
func (j *job) unhashed() []HashIn {
	var left []HashIn
	for _, f := range j.listing.Files {
		_, done := j.hashes[f.Path]
		if _, failed := j.unreadable[f.Path]; !done && !failed {
			left = append(left, HashIn{Folder: j.listing.Folder, Path: f.Path})
		}
	}
	return left
}

// copies are the files to delete: of all with the same content every one but
// the one to keep. A file with a second name is kept too, for deleting one of
// its names frees nothing; such a file is the first choice to keep. What is gone
// is neither.
func (j *job) copies(gone map[string]bool) []DeleteIn {
	type content struct {
		size int64
		sum  string
	}
	groups := map[content][]File{}
	var order []content
	for _, f := range j.listing.Files {
		h, ok := j.hashes[f.Path]
		if !ok || gone[f.Path] {
			continue
		}
		key := content{h.Size, h.SHA256}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], f)
	}
	var out []DeleteIn
	for _, key := range order {
		group := groups[key]
		slices.SortFunc(group, func(a, b File) int {
			if a.Linked != b.Linked {
				if a.Linked {
					return -1
				}
				return 1
			}
			return preferred(a.Path, b.Path)
		})
		for _, f := range group[1:] {
			if !f.Linked {
				out = append(out, DeleteIn{
					Folder: j.listing.Folder, Path: f.Path, Size: key.size, SHA256: key.sum, SameAs: group[0].Path,
				})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b DeleteIn) int { return cmp.Or(cmp.Compare(a.SameAs, b.SameAs), preferred(a.Path, b.Path)) })
	return out
}
