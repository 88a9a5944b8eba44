package session

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// answerElicitation answers elicitation/create with what elicit returns. allowURL is true if the URL mode was announced.
//
// 2025-11-25: "For backwards compatibility, servers MAY omit the mode field for form mode elicitation requests.
// Clients MUST treat requests without a mode field as form mode." And: "Server sends an elicitation/create request
// with a mode not declared in client capabilities: -32602 (Invalid params)".
func answerElicitation(
	ctx context.Context, params []byte, allowURL bool,
	elicit func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error),
) ([]byte, *responseError) {
	if !rawjson.IsObject(params) {
		return nil, &responseError{codeInvalidParams, "params is not an object"}
	}
	// The form is the mode of a request that names none.
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
	// The request is checked before a person sees it: a person should not be asked for an answer that cannot be sent.
	switch {
	case r.Mode == messages.ElicitForm && !rawjson.IsObject(r.Schema):
		return nil, &responseError{codeInvalidParams, "requestedSchema is not an object"}
	case r.Mode == messages.ElicitURL && !allowURL, r.Mode != messages.ElicitForm && r.Mode != messages.ElicitURL:
		return nil, &responseError{codeInvalidParams, "the mode was not announced"}
	case r.Mode == messages.ElicitURL && r.URL == "":
		return nil, &responseError{codeInvalidParams, "url is missing"}
	}
	res, err := elicit(ctx, r)
	if err != nil {
		return nil, handlerError(err)
	}
	return encodeElicitResult(r, res)
}

// encodeElicitResult writes the person's answer as the result. Nothing is added to it: exactly the content that the
// person saw last is sent. 2025-11-25: "content … Only present when action is "accept" and mode was "form"".
func encodeElicitResult(r messages.ElicitRequest, res messages.ElicitResult) ([]byte, *responseError) {
	switch res.Action {
	case messages.ElicitAccept:
	case messages.ElicitDecline, messages.ElicitCancel:
		return []byte(`{"action":"` + res.Action + `"}`), nil
	// An action that the specification does not know is a fault of the handler.
	default:
		return nil, &responseError{codeInternal, "the request could not be answered"}
	}
	// The answer to a URL has no content: the person gave it to the page.
	if r.Mode != messages.ElicitForm {
		return []byte(`{"action":"accept"}`), nil
	}
	content := res.Content
	if rawjson.IsNull(content) {
		content = json.RawMessage(`{}`)
	}
	if !isWholeObject(content) {
		return nil, &responseError{codeInternal, "the request could not be answered"}
	}
	b := append([]byte(nil), `{"action":"accept","content":`...)
	b = appendOneLine(b, content)
	return append(b, '}'), nil
}
