package anthropic

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// noText stands where the API needs a user's words and there are none.
const noText = "(no text)"

// conversation is built message by message so that the API takes it: the two roles take
// turns, the results of calls come first in the turn after them, no text is empty, and no
// two calls have one id.
type conversation struct {
	messages []sdk.MessageParam
	ids      map[string]string // by our id of a call, under which it went out
	taken    map[string]bool   // ids that went out
	open     map[string]bool   // our ids of the calls of the last assistant's turn
	called   map[string]bool   // names of tools
}

func (c *conversation) add(message llm.Message) error {
	switch message.Role {
	case llm.RoleUser:
		blocks, err := pieces(message.Parts)
		if err != nil {
			return err
		}
		if len(blocks) == 0 {
			blocks = append(blocks, sdk.NewTextBlock(noText))
		}
		c.say(sdk.MessageParamRoleUser, blocks)
		return nil
	case llm.RoleAssistant:
		return c.assistant(message.Parts)
	case llm.RoleTool:
		return c.results(message.Parts)
	}
	return fmt.Errorf("no role is called %q", message.Role)
}

// say adds to the turn of a role, or begins it.
func (c *conversation) say(role sdk.MessageParamRole, blocks []sdk.ContentBlockParamUnion) {
	if len(blocks) == 0 {
		return
	}
	if len(c.messages) == 0 && role != sdk.MessageParamRoleUser {
		c.say(sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion{sdk.NewTextBlock(noText)})
	}
	if n := len(c.messages); n > 0 && c.messages[n-1].Role == role {
		turn := append(c.messages[n-1].Content, blocks...)
		slices.SortStableFunc(turn, func(a, b sdk.ContentBlockParamUnion) int { return cmp.Compare(late(a), late(b)) })
		c.messages[n-1].Content = turn
		return
	}
	c.messages = append(c.messages, sdk.MessageParam{Role: role, Content: blocks})
}

// late is 0 for the result of a call, which comes first in its turn, and 1 for all else.
func late(b sdk.ContentBlockParamUnion) int {
	if b.OfToolResult != nil {
		return 0
	}
	return 1
}

func (c *conversation) assistant(parts []llm.Part) error {
	var blocks []sdk.ContentBlockParamUnion
	clear(c.open)
	for _, p := range parts {
		switch p.Kind {
		case llm.PartText:
			if !blank(p.Text) {
				blocks = append(blocks, sdk.NewTextBlock(p.Text))
			}
		case llm.PartReasoning:
			if p.Provider != provider || p.Opaque == nil {
				continue // what another provider thought, or nobody signed
			}
			thought, err := thought(p)
			if err != nil {
				return err
			}
			blocks = append(blocks, thought)
		case llm.PartToolCall:
			if p.ToolCall == nil {
				return fmt.Errorf("a tool call is empty")
			}
			call := *p.ToolCall
			id := c.wireID(call)
			c.ids[call.ID], c.open[call.ID], c.called[call.Name] = id, true, true
			blocks = append(blocks, sdk.NewToolUseBlock(id, json.RawMessage(remote.Object(call.Arguments)), call.Name))
		case llm.PartToolResult, llm.PartImage, llm.PartFile:
			return fmt.Errorf("a %s part cannot stand here", p.Kind)
		}
	}
	c.say(sdk.MessageParamRoleAssistant, blocks)
	return nil
}

// idForm is what the API takes as the id of a call.
var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// wireID returns the provider's id, or ours where that one is missing, of another form
// or taken: some servers call every call the same.
func (c *conversation) wireID(call llm.ToolCall) string {
	id := call.ProviderID
	if !idForm.MatchString(id) || c.taken[id] {
		id = call.ID
	}
	c.taken[id] = true
	return id
}

// results adds the results in order, and after them what else the turn brought (images,
// say). A result whose call is not in the turn before is told in words, since the API
// takes no result without its call.
func (c *conversation) results(parts []llm.Part) error {
	var blocks, rest []sdk.ContentBlockParamUnion
	for _, p := range parts {
		if p.Kind != llm.PartToolResult {
			more, err := pieces([]llm.Part{p})
			if err != nil {
				return err
			}
			rest = append(rest, more...)
			continue
		}
		if p.ToolResult == nil {
			return fmt.Errorf("a tool result is empty")
		}
		r := *p.ToolResult
		text := remote.Output(r)
		if !c.open[r.CallID] {
			rest = append(rest, sdk.NewTextBlock(fmt.Sprintf("Result (%s) of an earlier call of %s: %s", r.Status, r.Name, text)))
			continue
		}
		delete(c.open, r.CallID)
		block := sdk.ToolResultBlockParam{ToolUseID: c.ids[r.CallID]}
		if r.Status != llm.ResultSuccess {
			block.IsError = sdk.Bool(true)
		}
		if !blank(text) {
			block.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
		}
		blocks = append(blocks, sdk.ContentBlockParamUnion{OfToolResult: &block})
	}
	c.say(sdk.MessageParamRoleUser, append(blocks, rest...))
	return nil
}

// opaque is the stored form of reasoning: a signature, whose text is the part's, or a
// whole redacted block.
type opaque struct {
	Type      string `json:"type,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

const redacted = "redacted_thinking"

func thought(p llm.Part) (sdk.ContentBlockParamUnion, error) {
	var o opaque
	if err := json.Unmarshal(p.Opaque, &o); err != nil {
		return sdk.ContentBlockParamUnion{}, fmt.Errorf("reasoning of %s cannot be read: %w", provider, err)
	}
	switch {
	case o.Type == redacted && o.Data != "":
		return sdk.NewRedactedThinkingBlock(o.Data), nil
	case o.Type == "" && o.Signature != "":
		return sdk.NewThinkingBlock(o.Signature, p.Text), nil
	}
	return sdk.ContentBlockParamUnion{}, fmt.Errorf("reasoning of %s has neither a signature nor data", provider)
}

// pieces writes what a user's turn can hold; texts that are empty are left out.
func pieces(parts []llm.Part) ([]sdk.ContentBlockParamUnion, error) {
	var blocks []sdk.ContentBlockParamUnion
	for _, p := range parts {
		var block sdk.ContentBlockParamUnion
		var err error
		switch p.Kind {
		case llm.PartText:
			if blank(p.Text) {
				continue
			}
			block = sdk.NewTextBlock(p.Text)
		case llm.PartImage:
			block, err = image(p.File)
		case llm.PartFile:
			block, err = document(p.File)
		case llm.PartReasoning, llm.PartToolCall, llm.PartToolResult:
			err = fmt.Errorf("a %s part cannot stand here", p.Kind)
		}
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// blank reports whether the API takes a text for an empty one.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

func image(file *llm.FileRef) (sdk.ContentBlockParamUnion, error) {
	switch {
	case file == nil || file.URL == "" && len(file.Data) == 0:
		return sdk.ContentBlockParamUnion{}, fmt.Errorf("an image has neither URL nor data")
	case len(file.Data) == 0:
		if err := onTheWeb("an image", file.URL); err != nil {
			return sdk.ContentBlockParamUnion{}, err
		}
		return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: file.URL}), nil
	}
	switch kind := media(file); kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return sdk.NewImageBlockBase64(kind, base64.StdEncoding.EncodeToString(file.Data)), nil
	}
	return sdk.ContentBlockParamUnion{}, fmt.Errorf("an image is %q, and Anthropic takes image/jpeg, image/png, image/gif and image/webp", file.MediaType)
}

func document(file *llm.FileRef) (sdk.ContentBlockParamUnion, error) {
	if file == nil || file.URL == "" && len(file.Data) == 0 {
		return sdk.ContentBlockParamUnion{}, fmt.Errorf("a file has neither URL nor data")
	}
	kind := media(file)
	var block sdk.ContentBlockParamUnion
	switch text := strings.HasPrefix(kind, "text/") || kind == "application/json"; {
	case kind == "application/pdf" && len(file.Data) == 0:
		if err := onTheWeb("a file", file.URL); err != nil {
			return block, err
		}
		block = sdk.NewDocumentBlock(sdk.URLPDFSourceParam{URL: file.URL})
	case kind == "application/pdf":
		block = sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(file.Data)})
	case text && len(file.Data) > 0 && utf8.Valid(file.Data) && !blank(string(file.Data)):
		block = sdk.NewDocumentBlock(sdk.PlainTextSourceParam{Data: string(file.Data)})
	default:
		return block, fmt.Errorf("a file is %q, and Anthropic takes application/pdf, and the data of texts in UTF-8", file.MediaType)
	}
	if file.Name != "" {
		block.OfDocument.Title = sdk.String(file.Name)
	}
	return block, nil
}

func media(file *llm.FileRef) string {
	kind, _, err := mime.ParseMediaType(file.MediaType)
	if err != nil {
		return ""
	}
	return kind
}

// onTheWeb refuses addresses that Anthropic cannot fetch.
func onTheWeb(what, address string) error {
	scheme, _, _ := strings.Cut(address, "://")
	if scheme != "https" && scheme != "http" {
		return fmt.Errorf("%s has an address that begins with %s://, and Anthropic fetches https:// only: send its data", what, scheme)
	}
	return nil
}
