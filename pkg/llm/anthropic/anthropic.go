// Package anthropic asks models behind Anthropic's Messages API.
//
// [Open] reads where and how to ask from the environment:
//
//	ANTHROPIC_API_KEY   the key; needed unless ANTHROPIC_BASE_URL is set
//	ANTHROPIC_BASE_URL  another server that speaks the Messages API, without /v1
//	ANTHROPIC_THINKING  adaptive, disabled, or how many tokens the model may think; the
//	                    model's own default if it is not set, or if an agent's output
//	                    makes the model call a tool
//
// Replies are streamed. Thinking is stored with its signature, and goes back to
// Anthropic and to no other provider; that of other providers is not sent. The stable
// beginning of a conversation (tools, system prompt, all but the last turn) is marked for
// Anthropic's prompt cache. Retries are the caller's. Redirects are not followed, and the
// length of an answer is bounded.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

const (
	// provider marks the reasoning that this package wrote.
	provider = "anthropic"

	baseSetting    = "ANTHROPIC_BASE_URL"
	defaultBaseURL = "https://api.anthropic.com"
	exampleBaseURL = "http://127.0.0.1:11434"

	// leastThinking is the smallest number of tokens to think that the API takes.
	leastThinking = 1024
)

// Open returns the model called name on the server that env describes. It does
// not talk to the server. What is wrong with the environment is an [*llm.Error].
func Open(_ context.Context, name string, env func(string) string) (llm.Model, error) {
	if name == "" {
		return nil, remote.Refuse(llm.ClassInvalid, "the model has no name; write anthropic:NAME, for example anthropic:claude-sonnet-5-5")
	}
	key := strings.TrimSpace(env("ANTHROPIC_API_KEY"))
	given := strings.TrimSpace(env(baseSetting))
	switch {
	case given == "" && key == "":
		return nil, remote.Refuse(llm.ClassAuth, "ANTHROPIC_API_KEY is not set; set it, or set %s to a server that needs none", baseSetting)
	case given == "":
		given = defaultBaseURL
	}
	base, err := remote.Address(baseSetting, given, exampleBaseURL)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(base.Path, "/v1") {
		return nil, remote.Refuse(llm.ClassInvalid, "%s must not end in /v1, which is added; it looks like %s", baseSetting, exampleBaseURL)
	}
	thinking, budget, err := thinking(strings.TrimSpace(env("ANTHROPIC_THINKING")))
	if err != nil {
		return nil, err
	}

	// The service is made by hand: sdk.NewClient would read the environment of the
	// process and files of its user.
	options := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(remote.Client(baseSetting)),
		option.WithoutOpenTelemetry(),
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	return &model{
		name:     name,
		masks:    remote.NewMasks(key, base),
		thinking: thinking,
		budget:   budget,
		messages: sdk.NewMessageService(options...),
	}, nil
}

// thinking reads ANTHROPIC_THINKING.
func thinking(text string) (sdk.ThinkingConfigParamUnion, int64, error) {
	var out sdk.ThinkingConfigParamUnion
	switch text {
	case "":
		return out, 0, nil
	case "adaptive":
		out.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		return out, 0, nil
	case "disabled":
		disabled := sdk.NewThinkingConfigDisabledParam()
		out.OfDisabled = &disabled
		return out, 0, nil
	}
	budget, err := strconv.ParseInt(text, 10, 32)
	if err != nil || budget < leastThinking {
		return out, 0, remote.Refuse(llm.ClassInvalid, "ANTHROPIC_THINKING must be adaptive, disabled, or a number of tokens from %d on, not %q", leastThinking, text)
	}
	return sdk.ThinkingConfigParamOfEnabled(budget), budget, nil
}

// model is one model of one server. Nothing changes it.
type model struct {
	name     string
	masks    remote.Masks // what error messages must not hold
	thinking sdk.ThinkingConfigParamUnion
	budget   int64 // tokens to think, 0 if that is not limited by us
	messages sdk.MessageService
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
	stream := m.messages.NewStreaming(ctx, params, option.WithResponseInto(&response))
	if stream.Err() == nil {
		if err := m.notAStream(response); err != nil {
			_ = stream.Close() // the answer is refused whatever closing says
			return err
		}
	}
	return m.read(stream, response, yield)
}
