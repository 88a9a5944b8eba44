package session

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Handlers answer the requests of a server. A feature without a handler is not announced to the server, and refused
// if the server asks for it all the same. Handlers run on goroutines of the session, several at once, and may take as
// long as a person does. ctx ends with the session, with the server's cancellation, and with the call that the
// question belongs to, if that is known; it has the values of that call's context then. While a handler works, the
// idle timeout of that call stands still ([CallTimeout]). If the call is not known, the idle timeout of each pending
// call begins anew once. A panic of a handler ends the session as ClassPanic.
//
// The server learns little of a handler's error: that the request was refused if it is ErrDenied, that no person
// could be asked if it is messages.ErrNotShown, else that it failed.
type Handlers struct {
	// Sample asks the model and returns the result of sampling/createMessage, a JSON object. SampleTools announces
	// that the request may contain tools.
	Sample      func(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error)
	SampleTools bool
	// Elicit asks the person. ElicitURL announces that Elicit can send a person to a URL, not only fill a form.
	Elicit    func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error)
	ElicitURL bool
	// Roots lists the directories in which the server may work.
	Roots func(ctx context.Context) ([]messages.Root, error)
}

// appendCapabilities appends the object of the capabilities that we announce: exactly those that have a handler.
//
// 2025-11-25, Elicitation: "Clients that support elicitation MUST declare the elicitation capability … Clients
// declaring the elicitation capability MUST support at least one mode (form or url)."
func (h *Handlers) appendCapabilities(b []byte, era messages.Era) []byte {
	b = append(b, '{')
	empty := len(b)
	if h.Roots != nil {
		b = append(appendComma(b, empty), `"roots":{`...)
		// The modern era has no notification for changed roots: a server asks with each call.
		if era == messages.EraLegacy {
			b = append(b, `"listChanged":true`...)
		}
		b = append(b, '}')
	}
	if h.Sample != nil {
		b = append(appendComma(b, empty), `"sampling":{`...)
		if h.SampleTools {
			b = append(b, `"tools":{}`...)
		}
		b = append(b, '}')
	}
	if h.Elicit != nil {
		b = append(appendComma(b, empty), `"elicitation":{"form":{}`...)
		if h.ElicitURL {
			b = append(b, `,"url":{}`...)
		}
		b = append(b, '}')
	}
	if era == messages.EraModern {
		// Tasks extension of 2026-07-28: "A client that has negotiated this extension MUST be prepared to handle either
		// CallToolResult or CreateTaskResult in response to any supported request it issues."
		b = append(appendComma(b, empty), `"extensions":{"`+TasksExtension+`":{}}`...)
	}
	return append(b, '}')
}

// A responseError is the JSON-RPC error with which we answer a request of the server.
type responseError struct {
	code int
	text string
}

// They are shared and never changed.
var (
	methodNotFound  = &responseError{codeMethodNotFound, "method not found"}
	tooManyRequests = &responseError{codeInternal, "too many requests are being answered already"}
)

// handlerFor returns the function that answers a method, nil if there is no handler for it.
func (s *Session) handlerFor(method string) func(ctx context.Context, params []byte) ([]byte, *responseError) {
	h := &s.cfg.Handlers
	switch {
	case method == "roots/list" && h.Roots != nil:
		return s.answerRoots
	case method == "sampling/createMessage" && h.Sample != nil:
		return s.answerSampling
	case method == "elicitation/create" && h.Elicit != nil:
		return s.answerElicitation
	}
	return nil
}

// handlerError returns the error that a server gets for a handler's error. It contains no text of the handler's
// error, which may hold secrets.
func handlerError(err error) *responseError {
	if errors.Is(err, messages.ErrNotShown) {
		return &responseError{codeInternal, "nobody could be asked: " + messages.ErrNotShown.Error()}
	}
	if messages.ClassOf(err) == messages.ClassDenied {
		// 2025-11-25, Sampling, Error Handling: "User rejected sampling request: -1".
		return &responseError{-1, "the request was refused"}
	}
	return &responseError{codeInternal, "the request could not be answered"}
}

// answerRoots answers roots/list.
func (s *Session) answerRoots(ctx context.Context, _ []byte) ([]byte, *responseError) {
	roots, err := s.cfg.Handlers.Roots(ctx)
	if err != nil {
		return nil, handlerError(err)
	}
	if roots == nil { // the specification demands an array; nil would become null
		roots = []messages.Root{}
	}
	raw, err := json.Marshal(struct {
		Roots []messages.Root `json:"roots"`
	}{roots})
	if err != nil {
		return nil, handlerError(err)
	}
	return raw, nil
}

// answerSampling answers sampling/createMessage.
//
// 2025-11-25: "Servers MUST NOT send tool-enabled sampling requests to Clients that have not declared support for
// tool use via the sampling.tools capability"; and the schema of tools: "The client MUST return an error if this
// field is provided but ClientCapabilities.sampling.tools is not declared."
func (s *Session) answerSampling(ctx context.Context, params []byte) ([]byte, *responseError) {
	if !rawjson.IsObject(params) {
		return nil, &responseError{codeInvalidParams, "params is not an object"}
	}
	if !s.cfg.Handlers.SampleTools && (!rawjson.IsNull(rawjson.Member(params, "tools")) || !rawjson.IsNull(rawjson.Member(params, "toolChoice"))) {
		return nil, &responseError{codeInvalidParams, "tools were given, and sampling.tools was not announced"}
	}
	raw, err := s.cfg.Handlers.Sample(ctx, messages.SampleRequest{Params: params})
	if err != nil {
		return nil, handlerError(err)
	}
	// The handler's result goes into the message as it is, so it must not break it.
	if !isWholeObject(raw) {
		return nil, &responseError{codeInternal, "the request could not be answered"}
	}
	return raw, nil
}
