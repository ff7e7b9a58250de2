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
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/adjourn/adjourn/pkg/llm"
)

const defaultBaseURL = "https://api.openai.com/v1"

// idleConnections is how many stay open to one server. With the standard library's two,
// many sessions at once would have to connect again and again.
const idleConnections = 64

// Open returns the model called name on the server that env describes. It does
// not talk to the server. What is wrong with the environment is an [*llm.Error].
func Open(_ context.Context, name string, env func(string) string) (llm.Model, error) {
	if name == "" {
		return nil, refuse(llm.ClassInvalid, "the model has no name; write openai:NAME, for example openai:gpt-5-mini")
	}
	key := strings.TrimSpace(env("OPENAI_API_KEY"))
	given := strings.TrimSpace(env("OPENAI_BASE_URL"))
	if given == "" && key == "" {
		return nil, refuse(llm.ClassAuth, "OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs none")
	}
	base, err := baseURL(given)
	if err != nil {
		return nil, err
	}
	whole := false
	if text := strings.TrimSpace(env("OPENAI_STREAM")); text != "" {
		stream, err := strconv.ParseBool(text)
		if err != nil {
			return nil, refuse(llm.ClassInvalid, "OPENAI_STREAM must be true or false, not %q", text)
		}
		whole = !stream
	}

	// The service is made by hand: sdk.NewClient would read the environment of
	// the process, and link every other service of OpenAI.
	options := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(client()),
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	return &model{
		name:   name,
		masks:  masks(key, base),
		whole:  whole,
		modern: isOpenAI(base),
		chat:   sdk.NewChatCompletionService(options...),
	}, nil
}

func client() *http.Client {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return &http.Client{Transport: bounded{http.DefaultTransport}, CheckRedirect: noRedirect}
	}
	transport := shared.Clone()
	transport.MaxIdleConnsPerHost = idleConnections
	transport.MaxResponseHeaderBytes = maxHeader
	transport.ResponseHeaderTimeout = headerTime
	return &http.Client{Transport: bounded{transport}, CheckRedirect: noRedirect}
}

// baseURL checks the address. Its text is not repeated in errors, which are kept
// in journals: it may hold a password, or a token as user or in its path.
func baseURL(text string) (*url.URL, error) {
	if text == "" {
		text = defaultBaseURL
	}
	base, err := url.Parse(strings.TrimRight(text, "/"))
	switch {
	case err != nil:
		return nil, refuse(llm.ClassInvalid, "OPENAI_BASE_URL is not a URL; it looks like http://127.0.0.1:11434/v1")
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, refuse(llm.ClassInvalid, "OPENAI_BASE_URL must start with http:// or https:// and a host, for example http://127.0.0.1:11434/v1")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, refuse(llm.ClassInvalid, "OPENAI_BASE_URL must have no ? and no #, for example http://127.0.0.1:11434/v1")
	case !strings.HasSuffix(base.Path, "/v1"):
		return nil, refuse(llm.ClassInvalid, "OPENAI_BASE_URL must end in /v1, for example http://127.0.0.1:11434/v1; the one for %s does not", base.Host)
	}
	return base, nil
}

// masks takes secrets out of messages: the key, and what stands before the host
// and before /v1 in the address, because some gateways expect a key there.
func masks(key string, base *url.URL) *strings.Replacer {
	var pairs []string
	hide := func(secret, instead string) {
		if secret != "" && secret != "/" {
			pairs = append(pairs, secret, instead)
		}
	}
	hide(key, "[key]")
	if base.User != nil {
		hide(base.User.String()+"@", "…@")
		hide(base.User.Username()+":***@", "…@") // as net/http writes it
	}
	for _, path := range []string{base.EscapedPath(), base.Path} {
		path = strings.TrimSuffix(path, "/v1")
		hide(path, "/…")
		for segment := range strings.SplitSeq(path, "/") {
			if len(segment) >= shortestToken {
				hide(segment, "…")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// shortestToken is the length in bytes from which a segment of a path may be a secret
// token, which a server may quote by itself.
const shortestToken = 16

// isOpenAI tells the servers that want max_completion_tokens from those that
// know max_tokens only.
func isOpenAI(base *url.URL) bool {
	host := base.Hostname()
	return slices.ContainsFunc([]string{"openai.com", "openai.azure.com"}, func(domain string) bool {
		return host == domain || strings.HasSuffix(host, "."+domain)
	})
}

func refuse(class llm.ErrorClass, format string, args ...any) *llm.Error {
	return &llm.Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// model is one model of one server. Nothing changes it.
type model struct {
	name   string
	masks  *strings.Replacer // what error messages must not hold
	whole  bool              // ask for replies in one piece
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
