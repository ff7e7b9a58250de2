package runtime_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

func file(kind llm.PartKind, ref llm.FileRef) llm.Part { return llm.Part{Kind: kind, File: &ref} }

// picture is a user's message of every kind of part that one may have.
func picture() []llm.Part {
	return []llm.Part{
		llm.Text("here"), file(llm.PartImage, llm.FileRef{MediaType: "image/png", URL: "https://example.org/a.png"}),
		file(llm.PartFile, llm.FileRef{MediaType: "text/csv; charset=utf-8", Name: "a.csv", Data: []byte("a,b")}),
	}
}

func TestInput_in_parts(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"here": {needs("which?"), says("done")}}))
	p := w.process()
	params := runtime.StartParams{Key: w.key, Agent: "a", Input: picture(), Caller: person, IdempotencyKey: "k"}
	_, err := p.Start(context.Background(), params)
	require.NoError(t, err)
	require.NoError(t, p.work())
	require.Equal(t, picture(), w.session().Messages[0].Parts)

	again, err := p.Start(context.Background(), params)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	params.Input = append(picture()[:2:2], file(llm.PartFile, llm.FileRef{MediaType: "text/csv", Data: []byte("a,c")}))
	_, err = p.Start(context.Background(), params)
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err), "other bytes are another request")

	answer := runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.open(session.WaitInput).Wait, session.Answer{Message: picture()})}
	for _, repeated := range []bool{false, true} {
		answered, err := p.Submit(context.Background(), answer)
		require.NoError(t, err)
		require.Equal(t, picture(), answered.Answer.Message)
		require.Equal(t, repeated, answered.Repeated)
	}
	answer.Answer.Message = picture()[:2]
	_, err = p.Submit(context.Background(), answer)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	require.NoError(t, p.work())
	s := w.session()
	require.Equal(t, session.StatusSuspended, s.Status, "it asks again")
	require.Equal(t, llm.UserParts(picture()), s.Messages[2])
}

func TestInput_refused(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, nil))
	p := w.process()
	png := llm.FileRef{MediaType: "image/png", Data: []byte{1}}
	with := func(change func(*llm.FileRef)) []llm.Part {
		ref := png
		change(&ref)
		return []llm.Part{file(llm.PartImage, ref)}
	}
	for name, c := range map[string]struct {
		input []llm.Part
		code  runtime.Code
		says  string
	}{
		"nothing":             {nil, runtime.CodeInvalidInput, "the input is empty"},
		"no parts":            {[]llm.Part{}, runtime.CodeInvalidInput, "the input is empty"},
		"blank":               {[]llm.Part{llm.Text(" "), llm.Text("\n")}, runtime.CodeInvalidInput, "the input is empty"},
		"not text":            {[]llm.Part{llm.Text("a"), llm.Text("\xff")}, runtime.CodeInvalidInput, "part 2 of the input is not valid UTF-8"},
		"reasoning":           {[]llm.Part{llm.Text("a"), {Kind: llm.PartReasoning, Text: "hm"}}, runtime.CodeInvalidInput, "part 2 of the input is of kind reasoning"},
		"a call":              {[]llm.Part{llm.Text("a"), {Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "x"}}}, runtime.CodeInvalidInput, "of kind tool_call"},
		"a result":            {[]llm.Part{{Kind: llm.PartToolResult, Text: "a", ToolResult: &llm.ToolResult{}}}, runtime.CodeInvalidInput, "of kind tool_result"},
		"of no kind":          {[]llm.Part{{Text: "a"}}, runtime.CodeInvalidInput, "of an unknown kind"},
		"of another kind":     {[]llm.Part{{Kind: "video", Text: "a"}}, runtime.CodeInvalidInput, "of an unknown kind"},
		"opaque":              {[]llm.Part{{Kind: llm.PartText, Text: "a", Opaque: []byte{1}}}, runtime.CodeInvalidInput, "nothing else"},
		"provider":            {[]llm.Part{{Kind: llm.PartText, Text: "a", Provider: "x"}}, runtime.CodeInvalidInput, "nothing else"},
		"call in a text":      {[]llm.Part{{Kind: llm.PartText, Text: "a", ToolCall: &llm.ToolCall{}}}, runtime.CodeInvalidInput, "nothing else"},
		"file in a text":      {[]llm.Part{{Kind: llm.PartText, Text: "a", File: &png}}, runtime.CodeInvalidInput, "nothing else"},
		"text in an image":    {[]llm.Part{{Kind: llm.PartImage, Text: "a", File: &png}}, runtime.CodeInvalidInput, "nothing else"},
		"image without file":  {[]llm.Part{llm.Text("a"), {Kind: llm.PartImage}}, runtime.CodeInvalidInput, "nothing else"},
		"no media type":       {with(func(f *llm.FileRef) { f.MediaType = "" }), runtime.CodeInvalidInput, "media type"},
		"no such media type":  {with(func(f *llm.FileRef) { f.MediaType = "png" }), runtime.CodeInvalidInput, "media type"},
		"neither":             {with(func(f *llm.FileRef) { f.Data = nil }), runtime.CodeInvalidInput, "either a url or data"},
		"both":                {with(func(f *llm.FileRef) { f.URL = "https://example.org" }), runtime.CodeInvalidInput, "either a url or data"},
		"name is not text":    {with(func(f *llm.FileRef) { f.Name = "\xff" }), runtime.CodeInvalidInput, "not valid UTF-8"},
		"a path":              {with(func(f *llm.FileRef) { f.Data, f.URL = nil, "/etc/passwd" }), runtime.CodeInvalidInput, "whole address"},
		"a local file":        {with(func(f *llm.FileRef) { f.Data, f.URL = nil, "file:///etc/passwd" }), runtime.CodeInvalidInput, "whole address"},
		"a data url":          {with(func(f *llm.FileRef) { f.Data, f.URL = nil, "data:image/png;base64,AA==" }), runtime.CodeInvalidInput, "bytes go into data"},
		"no url":              {with(func(f *llm.FileRef) { f.Data, f.URL = nil, "https://%" }), runtime.CodeInvalidInput, "whole address"},
		"too many":            {make([]llm.Part, runtime.MaxInputParts+1), runtime.CodeInputTooLarge, "1001 parts"},
		"too large together":  {[]llm.Part{llm.Text(strings.Repeat("a", 3<<20)), file(llm.PartImage, llm.FileRef{MediaType: "image/png", Data: make([]byte, 2<<20)})}, runtime.CodeInputTooLarge, "the input has 5.0 MB"},
		"large is not enough": {[]llm.Part{llm.Text(strings.Repeat("a", runtime.MaxInput)), llm.Text("b")}, runtime.CodeInputTooLarge, "at most 4 MB"},
	} {
		_, err := p.Start(context.Background(), runtime.StartParams{Key: w.key, Agent: "a", Input: c.input, Caller: person})
		require.Equal(t, c.code, codeOf(err), name)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := p.Session(context.Background(), w.key)
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err), "nothing was begun")
}
