// Package openai asks models behind the OpenAI Chat Completions API.
//
// It is spoken by OpenAI and by most servers that you can run yourself: Ollama, vLLM,
// llama.cpp. [Open] reads where to ask from the environment:
//
//	OPENAI_API_KEY   the key; needed unless OPENAI_BASE_URL is set
//	OPENAI_BASE_URL  another server, up to its /v1: http://127.0.0.1:11434/v1
//	OPENAI_STREAM    false for servers that cannot stream
//
// Reasoning that a server shows is kept for the reader and not sent back, as
// Chat Completions has no place for it. Retries are the caller's. Redirects are not
// followed, and the length of an answer is bounded.
package openai

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

const (
	baseSetting    = "OPENAI_BASE_URL"
	defaultBaseURL = "https://api.openai.com/v1"
	exampleBaseURL = "http://127.0.0.1:11434/v1"
)

// Open returns the model called name on the server that env describes. It does
// not talk to the server. What is wrong with the environment is an [*llm.Error].
func Open(_ context.Context, name string, env func(string) string) (llm.Model, error) {
	if name == "" {
		return nil, remote.Refuse(llm.ClassInvalid, "the model has no name; write openai:NAME, for example openai:gpt-5-mini")
	}
	key := strings.TrimSpace(env("OPENAI_API_KEY"))
	given := strings.TrimSpace(env(baseSetting))
	if given == "" && key == "" {
		return nil, remote.Refuse(llm.ClassAuth, "OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs none")
	}
	base, err := baseURL(given)
	if err != nil {
		return nil, err
	}
	whole := false
	if text := strings.TrimSpace(env("OPENAI_STREAM")); text != "" {
		stream, err := strconv.ParseBool(text)
		if err != nil {
			return nil, remote.Refuse(llm.ClassInvalid, "OPENAI_STREAM must be true or false, not %q", text)
		}
		whole = !stream
	}

	// The service is made by hand: sdk.NewClient would read the environment of
	// the process, and link every other service of OpenAI.
	options := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(remote.Client(baseSetting)),
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	return &model{
		name:   name,
		masks:  remote.NewMasks(key, base),
		whole:  whole,
		modern: isOpenAI(base),
		chat:   sdk.NewChatCompletionService(options...),
	}, nil
}

func baseURL(text string) (*url.URL, error) {
	base, err := remote.Address(baseSetting, cmp.Or(text, defaultBaseURL), exampleBaseURL)
	if err == nil && !strings.HasSuffix(base.Path, "/v1") {
		return nil, remote.Refuse(llm.ClassInvalid, "%s must end in /v1, for example %s; the one for %s does not", baseSetting, exampleBaseURL, base.Host)
	}
	return base, err
}

// isOpenAI tells the servers that want max_completion_tokens from those that
// know max_tokens only.
func isOpenAI(base *url.URL) bool {
	host := base.Hostname()
	return slices.ContainsFunc([]string{"openai.com", "openai.azure.com"}, func(domain string) bool {
		return host == domain || strings.HasSuffix(host, "."+domain)
	})
}

// model is one model of one server. Nothing changes it.
type model struct {
	name   string
	masks  remote.Masks // what error messages must not hold
	whole  bool         // ask for replies in one piece
	modern bool
	chat   sdk.ChatCompletionService
}

var _ llm.Model = (*model)(nil)

// Stream asks once and yields what comes back.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		err := llm.ContextError(ctx)
		if err == nil {
			// Its end frees the connection of a reader who leaves early.
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			err = m.ask(inner, req, yield)
		}
		if err == nil {
			return
		}
		if stopped := llm.ContextError(ctx); stopped != nil {
			err = stopped // the end of ctx explains whatever broke because of it
		}
		yield(llm.Event{}, err)
	}
}

// ask returns nil when the reply was complete or the reader left.
func (m *model) ask(ctx context.Context, req llm.Request, yield func(llm.Event, error) bool) error {
	params, err := m.params(req)
	if err != nil {
		return err
	}
	var response *http.Response
	if m.whole {
		answer, err := m.chat.New(ctx, params, option.WithResponseInto(&response))
		if err != nil {
			return m.failure(err, response)
		}
		reply, err := m.reply(answer)
		if err != nil {
			return err
		}
		for e := range llm.Events(reply) {
			if !yield(e, nil) {
				return nil
			}
		}
		return nil
	}
	params.StreamOptions.IncludeUsage = sdk.Bool(true)
	stream := m.chat.NewStreaming(ctx, params, option.WithResponseInto(&response))
	if stream.Err() == nil {
		if err := m.notAStream(response); err != nil {
			_ = stream.Close() // the answer is refused whatever closing says
			return err
		}
	}
	return m.read(stream, response, yield)
}
