package session

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Handlers answer what a server asks of us. What has no handler is not announced to the server, and refused if it is
// asked for all the same. They run on goroutines of the session, several at once, and may take as long as a person does:
// ctx ends with the session, with the server's cancellation, and with the call that the question belongs to, where that is
// known; it has the values of that call's context then. While one of them works, the timeout of that call stands still
// (Patience). Where it is not known, the timeout of each call under way begins anew once. A panic of one ends the session
// as ClassPanic.
//
// The server is told little of an error: that the request was refused if it is ErrDenied, that nobody could be asked if
// it is messages.ErrNotShown, else that it failed.
type Handlers struct {
	// Sample asks the model: the result of sampling/createMessage, a JSON object. SampleTools announces that the request
	// may bring tools.
	Sample      func(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error)
	SampleTools bool
	// Elicit asks the person. ElicitURL announces that it can send a person to a URL, not only fill a form.
	Elicit    func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error)
	ElicitURL bool
	// Roots lists where the server may work.
	Roots func(ctx context.Context) ([]messages.Root, error)
}

// appendCapabilities writes what we announce.
//
// 2025-11-25, Elicitation: "Clients that support elicitation MUST declare the elicitation capability … Clients declaring
// the elicitation capability MUST support at least one mode (form or url)."
func (h *Handlers) appendCapabilities(b []byte, era messages.Era) []byte {
	b = append(b, '{')
	empty := len(b)
	if h.Roots != nil {
		b = append(comma(b, empty), `"roots":{`...)
		if era == messages.EraLegacy {
			b = append(b, `"listChanged":true`...)
		}
		b = append(b, '}')
	}
	if h.Sample != nil {
		b = append(comma(b, empty), `"sampling":{`...)
		if h.SampleTools {
			b = append(b, `"tools":{}`...)
		}
		b = append(b, '}')
	}
	if h.Elicit != nil {
		b = append(comma(b, empty), `"elicitation":{"form":{}`...)
		if h.ElicitURL {
			b = append(b, `,"url":{}`...)
		}
		b = append(b, '}')
	}
	if era == messages.EraModern {
		// Tasks extension of 2026-07-28: "A client that has negotiated this extension MUST be prepared to handle either
		// CallToolResult or CreateTaskResult in response to any supported request it issues."
		b = append(comma(b, empty), `"extensions":{"`+TasksExtension+`":{}}`...)
	}
	return append(b, '}')
}

// refusal is why we do not answer a request with a result.
type refusal struct {
	code int
	text string
}

var (
	notFound = &refusal{codeMethodNotFound, "method not found"}
	tooMany  = &refusal{codeInternal, "too many requests are being answered already"}
)

// handler is the function that answers a method, nil if nothing does.
func (s *Session) handler(method string) func(ctx context.Context, params []byte) ([]byte, *refusal) {
	h := &s.cfg.Handlers
	switch {
	case method == "roots/list" && h.Roots != nil:
		return s.listRoots
	case method == "sampling/createMessage" && h.Sample != nil:
		return s.sample
	case method == "elicitation/create" && h.Elicit != nil:
		return s.elicit
	}
	return nil
}

// failed is what a server is told of a handler's error: no text of it, because nobody knows what it holds.
func failed(err error) *refusal {
	if errors.Is(err, messages.ErrNotShown) {
		return &refusal{codeInternal, "nobody could be asked: " + messages.ErrNotShown.Error()}
	}
	if messages.ClassOf(err) == messages.ClassDenied {
		// 2025-11-25, Sampling, Error Handling: "User rejected sampling request: -1".
		return &refusal{-1, "the request was refused"}
	}
	return &refusal{codeInternal, "the request could not be answered"}
}

func (s *Session) listRoots(ctx context.Context, _ []byte) ([]byte, *refusal) {
	roots, err := s.cfg.Handlers.Roots(ctx)
	if err != nil {
		return nil, failed(err)
	}
	if roots == nil {
		roots = []messages.Root{}
	}
	raw, err := json.Marshal(struct {
		Roots []messages.Root `json:"roots"`
	}{roots})
	if err != nil {
		return nil, failed(err)
	}
	return raw, nil
}

// sample answers sampling/createMessage.
//
// 2025-11-25: "Servers MUST NOT send tool-enabled sampling requests to Clients that have not declared support for tool use
// via the sampling.tools capability"; and the schema of tools: "The client MUST return an error if this field is provided
// but ClientCapabilities.sampling.tools is not declared."
func (s *Session) sample(ctx context.Context, params []byte) ([]byte, *refusal) {
	if !rawjson.IsObject(params) {
		return nil, &refusal{codeInvalidParams, "params is not an object"}
	}
	if !s.cfg.Handlers.SampleTools && (!rawjson.IsNull(rawjson.Member(params, "tools")) || !rawjson.IsNull(rawjson.Member(params, "toolChoice"))) {
		return nil, &refusal{codeInvalidParams, "tools were given, and sampling.tools was not announced"}
	}
	raw, err := s.cfg.Handlers.Sample(ctx, messages.SampleRequest{Params: params})
	if err != nil {
		return nil, failed(err)
	}
	if !isWholeObject(raw) {
		return nil, &refusal{codeInternal, "the request could not be answered"}
	}
	return raw, nil
}
