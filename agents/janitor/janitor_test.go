package janitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// folder makes a folder of files, without symlinks in its own name.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, content := range files {
		write(t, dir, name, content)
	}
	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
	require.NoError(t, os.WriteFile(full, []byte(content), 0o600))
}

// contents reads a folder back, symlinks as what they point to.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if d.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			files[filepath.ToSlash(rel)] = "-> " + target
			return err
		}
		text, err := os.ReadFile(p)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return files
}

func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}

// files make the folders of all tests the janitor's home.
var files = tool.Files{Home: os.TempDir()}

// atHome opens it.
func atHome(t *testing.T) deletion.Folder {
	t.Helper()
	h, err := confined.Home(files)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Root.Close()) })
	return deletion.Folder{Folder: h}
}

func toolCalled(t *testing.T, name string) tool.Tool {
	t.Helper()
	tools := Tools()
	i := slices.IndexFunc(tools, func(tl tool.Tool) bool { return tl.Name() == name })
	require.GreaterOrEqual(t, i, 0, name)
	return tools[i]
}

// call runs a tool as the runtime does: validated arguments, JSON result.
func call[Out any](t *testing.T, ctx context.Context, name string, in any) (Out, error) {
	t.Helper()
	var out Out
	args, err := json.Marshal(in)
	require.NoError(t, err)
	tl := toolCalled(t, name)
	require.NoError(t, tl.Validate(args))
	raw, err := tl.Run(ctx, toolcall.New[tool.Call](toolcall.Config[tool.Files]{ID: "c1-0", Name: name, IdempotencyKey: "key-" + sum(string(args)), Files: files}), args)
	if err == nil {
		require.NoError(t, json.Unmarshal(raw, &out))
	}
	return out, err
}

// drive is the runtime in small: it plans, asks decide about each deletion,
// runs the tools, and returns all messages. meanwhile happens before the
// deletions of a reply run.
type drive struct {
	decide    func(DeleteIn) (denied string)
	edit      func(*DeleteIn) // what a person makes of a deletion
	meanwhile func()
	replies   []agent.Reply
}

func (d *drive) run(t *testing.T, messages []llm.Message) []llm.Message {
	t.Helper()
	for step := 1; ; step++ {
		require.Less(t, step, 100, "it does not end")
		before, err := json.Marshal(messages)
		require.NoError(t, err)
		view := agent.View{Messages: messages, State: &session.State{}}
		reply, err := Plan(t.Context(), view)
		require.NoError(t, err)
		again, err := Plan(t.Context(), view)
		require.NoError(t, err)
		require.Equal(t, reply, again, "planning again says the same again")
		after, err := json.Marshal(messages)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), "planning changes nothing")

		d.replies = append(d.replies, reply)
		m, err := reply.Message()
		require.NoError(t, err)
		results := llm.Message{Role: llm.RoleTool}
		for i, p := range m.Parts {
			if p.ToolCall == nil {
				continue
			}
			p.ToolCall.ID = fmt.Sprintf("c%d-%d", len(messages), i)
			results.Parts = append(results.Parts, llm.Part{Kind: llm.PartToolResult, ToolResult: d.result(t, *p.ToolCall)})
		}
		messages = append(messages, m)
		if len(results.Parts) == 0 {
			return messages
		}
		messages = append(messages, results)
	}
}

func (d *drive) result(t *testing.T, c llm.ToolCall) *llm.ToolResult {
	t.Helper()
	out := &llm.ToolResult{CallID: c.ID, Name: c.Name, Status: llm.ResultSuccess}
	say := func(status llm.ResultStatus, text string) *llm.ToolResult {
		out.Status = status
		out.Output, _ = json.Marshal(text)
		return out
	}
	tl := toolCalled(t, c.Name)
	require.NoError(t, tl.Validate(c.Arguments))
	if tl.NeedsApproval(c.Arguments) {
		var in DeleteIn
		require.NoError(t, json.Unmarshal(c.Arguments, &in))
		if d.meanwhile != nil {
			d.meanwhile()
			d.meanwhile = nil
		}
		if d.decide != nil {
			if denied := d.decide(in); denied != "" {
				return say(llm.ResultDenied, denied)
			}
		}
		if d.edit != nil {
			d.edit(&in)
			c.Arguments, _ = json.Marshal(in)
			require.NoError(t, tl.Validate(c.Arguments))
		}
	}
	raw, err := tl.Run(t.Context(), toolcall.New[tool.Call](toolcall.Config[tool.Files]{ID: c.ID, Name: c.Name, IdempotencyKey: c.ID, Files: files}), c.Arguments)
	if err != nil {
		return say(llm.ResultError, err.Error())
	}
	out.Output = raw
	return out
}

// names are the tools a reply calls, with how often.
func names(r agent.Reply) map[string]int {
	out := map[string]int{}
	for _, c := range r.Calls {
		out[c.Name]++
	}
	return out
}

func TestTools(t *testing.T) {
	t.Parallel()
	for _, tl := range Tools() {
		require.NoError(t, tl.Err())
	}
	args := json.RawMessage(`{}`)
	require.False(t, toolCalled(t, FindCopies).NeedsApproval(args))
	require.True(t, toolCalled(t, DeleteFile).NeedsApproval(args))
	require.Equal(t, session.ReadOnly, toolCalled(t, FindCopies).Effect())
	require.Equal(t, session.SideEffect, toolCalled(t, DeleteFile).Effect())
}

func TestAgent(t *testing.T) {
	t.Parallel()
	r, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{Agent()}})
	require.NoError(t, err)
	rules, err := r.Rules("janitor", nil)
	require.NoError(t, err)
	require.Empty(t, rules.Model, "it works without a model")
	require.Equal(t, []string{DeleteFile, FindCopies}, rules.Tools)
	p, err := r.Planner(t.Context(), rules, nil)
	require.NoError(t, err)
	reply, err := p.Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("/some/folder")}})
	require.NoError(t, err)
	require.Equal(t, map[string]int{FindCopies: 1}, names(reply))
}

func keys(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }
