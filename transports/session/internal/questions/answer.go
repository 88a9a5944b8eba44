package questions

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// HandlerError returns the error that a server gets for a handler's error. It contains no text of the handler's
// error, which may hold secrets.
func HandlerError(err error) *jsonrpc.ResponseError {
	// A client that was asked in our place has refused in its own words, which the server may have: they are about its question.
	var e *messages.Error
	if errors.As(err, &e) && e.Op == "answer" && jsonrpc.IsWholeObject(e.Reply) {
		return &jsonrpc.ResponseError{Raw: e.Reply}
	}
	if errors.Is(err, messages.ErrNotShown) {
		return &jsonrpc.ResponseError{Code: jsonrpc.CodeInternal, Text: "nobody could be asked: " + messages.ErrNotShown.Error()}
	}
	if messages.ClassOf(err) == messages.ClassDenied {
		// 2025-11-25, Sampling, Error Handling: "User rejected sampling request: -1".
		return &jsonrpc.ResponseError{Code: -1, Text: "the request was refused"}
	}
	return &jsonrpc.ResponseError{Code: jsonrpc.CodeInternal, Text: "the request could not be answered"}
}

// AnswerRoots answers roots/list with the directories that list returns.
func AnswerRoots(ctx context.Context, list func(context.Context) ([]messages.Root, error)) ([]byte, *jsonrpc.ResponseError) {
	roots, err := list(ctx)
	if err != nil {
		return nil, HandlerError(err)
	}
	raw := []byte(`{"roots":[`) // the specification demands an array, also of nothing
	for i, root := range roots {
		if i > 0 {
			raw = append(raw, ',')
		}
		if jsonrpc.IsWholeObject(root.Raw) {
			raw = jsonrpc.AppendOneLine(raw, root.Raw)
			continue
		}
		one, err := json.Marshal(root)
		if err != nil {
			return nil, HandlerError(err)
		}
		raw = append(raw, one...)
	}
	return append(raw, "]}"...), nil
}

// AnswerSampling answers sampling/createMessage with what sample returns. allowTools is true if sampling.tools was announced.
//
// 2025-11-25: "Servers MUST NOT send tool-enabled sampling requests to Clients that have not declared support for
// tool use via the sampling.tools capability"; and the schema of tools: "The client MUST return an error if this
// field is provided but ClientCapabilities.sampling.tools is not declared."
func AnswerSampling(
	ctx context.Context, params []byte, allowTools bool,
	sample func(context.Context, messages.SampleRequest) (json.RawMessage, error),
) ([]byte, *jsonrpc.ResponseError) {
	if !rawjson.IsObject(params) {
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInvalidParams, Text: "params is not an object"}
	}
	if !allowTools && (!rawjson.IsNull(rawjson.Member(params, "tools")) || !rawjson.IsNull(rawjson.Member(params, "toolChoice"))) {
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInvalidParams, Text: "tools were given, and sampling.tools was not announced"}
	}
	raw, err := sample(ctx, messages.SampleRequest{Params: params})
	if err != nil {
		return nil, HandlerError(err)
	}
	// The handler's result goes into the message as it is, so it must not break it.
	if !jsonrpc.IsWholeObject(raw) {
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInternal, Text: "the request could not be answered"}
	}
	return raw, nil
}
