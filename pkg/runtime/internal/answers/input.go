package answers

import (
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
)

// MaxInputParts is how many parts a user message may have.
const MaxInputParts = 1000

// CheckInput refuses a user message that no model could be shown, or that could
// not be kept: it says something, in text, images and files only.
func CheckInput(key session.Key, parts []llm.Part) error {
	size, empty := 0, true
	for _, p := range parts {
		size += len(p.Text)
		empty = empty && strings.TrimSpace(p.Text) == "" && p.File == nil
		if f := p.File; f != nil {
			size += len(f.MediaType) + len(f.Name) + len(f.URL) + len(f.Data)
		}
	}
	switch {
	case size > codes.MaxInput:
		return refusal.New(codes.InputTooLarge, key, "the input has %.1f MB; at most %d MB are taken. Put large data into a file and let a tool read it", float64(size)/(1<<20), codes.MaxInput>>20)
	case len(parts) > MaxInputParts:
		return refusal.New(codes.InputTooLarge, key, "the input has %d parts; at most %d are taken", len(parts), MaxInputParts)
	case empty:
		return refusal.New(codes.InvalidInput, key, "the input is empty: say what the agent is to do")
	}
	for i, p := range parts {
		if err := checkInputPart(p); err != nil {
			where := "the input"
			if len(parts) > 1 {
				where = fmt.Sprintf("part %d of the input", i+1)
			}
			return refusal.New(codes.InvalidInput, key, "%s %v", where, err)
		}
	}
	return nil
}

// checkInputPart completes the sentence "the input …".
func checkInputPart(p llm.Part) error {
	switch p.Kind {
	case llm.PartText, llm.PartImage, llm.PartFile:
	case llm.PartReasoning, llm.PartToolCall, llm.PartToolResult:
		return fmt.Errorf("is of kind %s: a user message has text, images and files only", p.Kind)
	default:
		return fmt.Errorf("is of an unknown kind: use %s, %s or %s", llm.PartText, llm.PartImage, llm.PartFile)
	}
	isText := p.Kind == llm.PartText
	switch {
	case p.Provider != "" || p.Opaque != nil || p.ToolCall != nil || p.ToolResult != nil, isText == (p.File != nil), !isText && p.Text != "":
		return fmt.Errorf("has to have either text, with kind %s, or a file, with kind %s or %s, and nothing else", llm.PartText, llm.PartImage, llm.PartFile)
	case !utf8.ValidString(p.Text):
		return fmt.Errorf("is not valid UTF-8 text")
	case isText:
		return nil
	}
	return checkFile(*p.File)
}

// schemes of addresses that a provider, or a tool, may be given.
var schemes = []string{"https", "http", "s3"}

func checkFile(f llm.FileRef) error {
	media, _, err := mime.ParseMediaType(f.MediaType)
	switch {
	case err != nil || !strings.Contains(media, "/"):
		return fmt.Errorf("has a file without a media type: say mediaType, as in image/png")
	case !utf8.ValidString(f.Name) || !utf8.ValidString(f.URL) || !utf8.ValidString(f.MediaType):
		return fmt.Errorf("has a file whose name is not valid UTF-8 text")
	case (f.URL == "") == (len(f.Data) == 0):
		return fmt.Errorf("has a file that needs either a url or data")
	case f.URL == "":
		return nil
	}
	address, err := url.Parse(f.URL)
	if err != nil || !slices.Contains(schemes, address.Scheme) || address.Host == "" {
		return fmt.Errorf("has a file whose url is none: use a whole address that begins with %s://; bytes go into data", strings.Join(schemes, ":// or "))
	}
	return nil
}
