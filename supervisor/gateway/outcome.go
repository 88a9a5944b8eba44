package gateway

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// failedCall is the answer to a call that has no result. A server's own refusal passes as it came; every other end is a result that
// the model reads: what happened, and whether calling again is safe.
func failedCall(err error) ([]byte, *serve.Error) {
	e := errorOf(err)
	if e.Outcome == messages.OutcomeRejected && e.Reply != nil {
		return nil, &serve.Error{Raw: e.Reply}
	}
	if errors.Is(e, messages.ErrUnknownTool) || errors.Is(e, messages.ErrUnknownServer) {
		return nil, serve.InvalidParams("Unknown tool: " + e.Error())
	}
	b := rawjson.AppendText([]byte(`{"content":[{"type":"text","text":`), textFor(e))
	b = append(b, `}],"isError":true,"_meta":`...)
	return append(appendOutcome(b, e), '}'), nil
}

// outcomeText returns the text of a result that failedCall has made; empty for one of a server. A server may write the same _meta, with any
// content beside it: then its own text is returned, or nothing.
func outcomeText(result []byte) string {
	list := rawjson.Member(result, "content")
	if rawjson.Member(rawjson.Member(result, "_meta"), "mcpvisor/outcome") == nil || !rawjson.IsArray(list) {
		return ""
	}
	content := rawjson.ArrayAt(list, 0, 0)
	if !content.Next() {
		return ""
	}
	text, _ := rawjson.Text(rawjson.Member(content.Skip(), "text"))
	return text
}

// problemText returns the text of an error.
func problemText(e *serve.Error) string {
	if e.Raw == nil {
		return e.Message
	}
	text, _ := rawjson.Text(rawjson.Member(e.Raw, "message"))
	return text
}

// failedRead is the answer to a read that has no result: always an error, because a read has no text for a model.
func failedRead(err error, modern bool) *serve.Error {
	e := errorOf(err)
	switch {
	case e.Outcome == messages.OutcomeRejected && e.Reply != nil:
		return &serve.Error{Raw: e.Reply}
	case errors.Is(e, messages.ErrUnknownResource) || errors.Is(e, messages.ErrUnknownPrompt):
		return &serve.Error{Code: notFoundCode(modern), Message: e.Error()}
	case e.Outcome == messages.OutcomeNotSent && e.Class == messages.ClassInvalid: // such as what the server does not declare
		return serve.InvalidParams(e.Error())
	}
	return &serve.Error{Code: serve.CodeInternal, Message: textFor(e), Data: appendOutcome(nil, e)}
}

// notFoundCode is that of a resource that nobody has. 2026-07-28: "servers MUST return a JSON-RPC error with code -32602"; before
// it was -32002.
func notFoundCode(modern bool) int {
	if modern {
		return serve.CodeInvalidParams
	}
	return -32002
}

// errorOf returns the error as it may be told to an agent: a manager knows names that the scope of the agent hides, so the nearest one
// is left out.
func errorOf(err error) *messages.Error {
	var e *messages.Error
	if errors.As(err, &e) {
		if e.Nearest != "" {
			public := *e
			public.Nearest, public.Fix = "", "see the list for the names"
			return &public
		}
		return e
	}
	return &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassOf(err), Text: messages.Line(err.Error(), 400)}
}

// textFor says what happened, whether calling again is safe, and when it can succeed.
func textFor(e *messages.Error) string {
	text := e.Error()
	switch {
	case e.Class != messages.ClassUnauthorized || e.Server == "" || strings.Contains(text, "mcpvisor login"):
	case e.Fix == "then reconnect it":
		text += ": mcpvisor reconnect " + messages.Line(e.Server, 100)
	default:
		text += "; a person must sign in: mcpvisor login " + messages.Line(e.Server, 100)
	}
	switch e.Outcome {
	case messages.OutcomeNotSent:
		text += ". Nothing was sent to the server, so calling again cannot run it twice"
	case messages.OutcomeRejected:
		text += ". The server refused the request without running it"
	default:
		text += ". It may have run: look at what it would have changed before calling again"
	}
	if e.RetryAfter > 0 {
		text += ". The next attempt to connect the server begins in " + e.RetryAfter.Round(100*time.Millisecond).String()
	}
	return text + "."
}

// appendOutcome appends the object that tells a program the same.
func appendOutcome(b []byte, e *messages.Error) []byte {
	b = rawjson.AppendText(append(b, `{"mcpvisor/outcome":`...), string(e.Outcome))
	b = rawjson.AppendText(append(b, `,"mcpvisor/class":`...), string(e.Class))
	if e.Server != "" {
		b = rawjson.AppendText(append(b, `,"mcpvisor/server":`...), e.Server)
	}
	if e.RetryAfter > 0 {
		b = strconv.AppendInt(append(b, `,"mcpvisor/retryAfterMs":`...), e.RetryAfter.Milliseconds(), 10)
	}
	return append(b, '}')
}
