package session

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/questions"
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

// ReadElicitation reads the params of elicitation/create as a session does, for a program to which a question is passed on.
// It checks nothing.
func ReadElicitation(params json.RawMessage) messages.ElicitRequest {
	return questions.ReadElicitation(params)
}

// appendCapabilities appends the object of the capabilities that we announce: exactly those that have a handler.
//
// 2025-11-25, Elicitation: "Clients that support elicitation MUST declare the elicitation capability … Clients
// declaring the elicitation capability MUST support at least one mode (form or url)."
func (h *Handlers) appendCapabilities(b []byte, era messages.Era) []byte {
	b = append(b, '{')
	empty := len(b)
	if h.Roots != nil {
		b = append(jsonrpc.AppendComma(b, empty), `"roots":{`...)
		// The modern era has no notification for changed roots: a server asks with each call.
		if era == messages.EraLegacy {
			b = append(b, `"listChanged":true`...)
		}
		b = append(b, '}')
	}
	if h.Sample != nil {
		b = append(jsonrpc.AppendComma(b, empty), `"sampling":{`...)
		if h.SampleTools {
			b = append(b, `"tools":{}`...)
		}
		b = append(b, '}')
	}
	if h.Elicit != nil {
		b = append(jsonrpc.AppendComma(b, empty), `"elicitation":{"form":{}`...)
		if h.ElicitURL {
			b = append(b, `,"url":{}`...)
		}
		b = append(b, '}')
	}
	if era == messages.EraModern {
		// Tasks extension of 2026-07-28: "A client that has negotiated this extension MUST be prepared to handle either
		// CallToolResult or CreateTaskResult in response to any supported request it issues."
		b = append(jsonrpc.AppendComma(b, empty), `"extensions":{"`+TasksExtension+`":{}}`...)
	}
	return append(b, '}')
}

// answerable returns what another client has declared, without the questions that no handler passes on to it.
//
// 2026-07-28: "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."
func (h *Handlers) answerable(declared []byte) []byte {
	if h.Roots == nil {
		declared = rawjson.Without(declared, "roots")
	}
	switch sampling := rawjson.Member(declared, "sampling"); {
	case sampling == nil || h.Sample != nil && h.SampleTools:
	case h.Sample == nil:
		declared = rawjson.Without(declared, "sampling")
	default:
		declared = rawjson.With(declared, "sampling", rawjson.Without(sampling, "tools"))
	}
	elicitation := rawjson.Member(declared, "elicitation")
	if elicitation == nil || h.Elicit != nil && h.ElicitURL {
		return declared
	}
	// An empty object stands for forms: a client that can only be sent to a URL has not declared them.
	left := rawjson.Without(elicitation, "url")
	if h.Elicit == nil || len(left) <= 2 && len(left) < len(elicitation) {
		return rawjson.Without(declared, "elicitation")
	}
	return rawjson.With(declared, "elicitation", left)
}

// They are shared and never changed.
var (
	methodNotFound   = &jsonrpc.ResponseError{Code: jsonrpc.CodeMethodNotFound, Text: "method not found"}
	tooManyRequests  = &jsonrpc.ResponseError{Code: jsonrpc.CodeInternal, Text: "too many requests are being answered already"}
	duplicateRequest = &jsonrpc.ResponseError{Code: jsonrpc.CodeInvalidRequest, Text: "a request with this id is being answered already"}
)

// An answerFunc answers one request of the server: with a result, or with the error that the server gets.
type answerFunc func(ctx context.Context, params []byte) ([]byte, *jsonrpc.ResponseError)

// findHandler returns the function that answers a method, nil if there is no handler for it.
func (h *Handlers) findHandler(method string) answerFunc {
	switch {
	case method == "roots/list" && h.Roots != nil:
		return func(ctx context.Context, _ []byte) ([]byte, *jsonrpc.ResponseError) {
			return questions.AnswerRoots(ctx, h.Roots)
		}
	case method == "sampling/createMessage" && h.Sample != nil:
		return func(ctx context.Context, params []byte) ([]byte, *jsonrpc.ResponseError) {
			return questions.AnswerSampling(ctx, params, h.SampleTools, h.Sample)
		}
	case method == "elicitation/create" && h.Elicit != nil:
		return func(ctx context.Context, params []byte) ([]byte, *jsonrpc.ResponseError) {
			return questions.AnswerElicitation(ctx, params, h.ElicitURL, h.Elicit)
		}
	}
	return nil
}
