package questions

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// AnswerElicitation answers elicitation/create with what elicit returns. allowURL is true if the URL mode was announced.
//
// 2025-11-25: "For backwards compatibility, servers MAY omit the mode field for form mode elicitation requests.
// Clients MUST treat requests without a mode field as form mode." And: "Server sends an elicitation/create request
// with a mode not declared in client capabilities: -32602 (Invalid params)".
func AnswerElicitation(
	ctx context.Context, params []byte, allowURL bool,
	elicit func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error),
) ([]byte, *jsonrpc.ResponseError) {
	if !rawjson.IsObject(params) {
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInvalidParams, Text: "params is not an object"}
	}
	r := ReadElicitation(params)
	// The request is checked before a person sees it: a person should not be asked for an answer that cannot be sent.
	switch {
	case r.Mode == messages.ElicitForm && !rawjson.IsObject(r.Schema):
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInvalidParams, Text: "requestedSchema is not an object"}
	case r.Mode == messages.ElicitURL && !allowURL, r.Mode != messages.ElicitForm && r.Mode != messages.ElicitURL:
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInvalidParams, Text: "the mode was not announced"}
	case r.Mode == messages.ElicitURL && r.URL == "":
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInvalidParams, Text: "url is missing"}
	}
	res, err := elicit(ctx, r)
	if err != nil {
		return nil, HandlerError(err)
	}
	return encodeElicitResult(r, res)
}

// ReadElicitation reads the params of elicitation/create, an object. The form is the mode of a request that names none.
func ReadElicitation(params []byte) messages.ElicitRequest {
	r := messages.ElicitRequest{Mode: messages.ElicitForm, Params: params}
	m := rawjson.ObjectAt(params, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "mode":
			if !rawjson.IsNull(value) {
				r.Mode, _ = rawjson.Text(value)
			}
		case "message":
			r.Message, _ = rawjson.Text(value)
		case "requestedSchema":
			r.Schema = value
		case "url":
			r.URL, _ = rawjson.Text(value)
		case "elicitationId":
			r.ID, _ = rawjson.Text(value)
		}
	}
	return r
}

// encodeElicitResult writes the person's answer as the result. Nothing is added to it: exactly the content that the
// person saw last is sent. 2025-11-25: "content … Only present when action is "accept" and mode was "form"".
func encodeElicitResult(r messages.ElicitRequest, res messages.ElicitResult) ([]byte, *jsonrpc.ResponseError) {
	switch res.Action {
	case messages.ElicitAccept, messages.ElicitDecline, messages.ElicitCancel:
		if jsonrpc.IsWholeObject(res.Raw) {
			return res.Raw, nil
		}
	}
	switch res.Action {
	case messages.ElicitAccept:
	case messages.ElicitDecline, messages.ElicitCancel:
		return []byte(`{"action":"` + res.Action + `"}`), nil
	// An action that the specification does not know is a fault of the handler.
	default:
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInternal, Text: "the request could not be answered"}
	}
	// The answer to a URL has no content: the person gave it to the page.
	if r.Mode != messages.ElicitForm {
		return []byte(`{"action":"accept"}`), nil
	}
	content := res.Content
	if rawjson.IsNull(content) {
		content = json.RawMessage(`{}`)
	}
	if !jsonrpc.IsWholeObject(content) {
		return nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInternal, Text: "the request could not be answered"}
	}
	b := append([]byte(nil), `{"action":"accept","content":`...)
	b = jsonrpc.AppendOneLine(b, content)
	return append(b, '}'), nil
}
