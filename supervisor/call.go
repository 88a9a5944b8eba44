package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

func timeSince(t time.Time) time.Duration { return time.Since(t) }

// Result is the answer of a tool. It is safe for concurrent use as long as the program does not change its fields.
type Result struct {
	// Raw is the server's result object, byte for byte, or the object that Config.Sanitize returned. It is untrusted.
	Raw json.RawMessage
	// IsError says that the tool itself failed: outcome OutcomeToolError. It is not a Go error, because a model should
	// read it.
	IsError bool

	// outputFlaw compares the answer once and keeps the outcome; nil if there is nothing to compare.
	outputFlaw func() string
}

// Flaw returns how the answer violates the tool's output schema, in one line that is fit for a terminal. It is empty
// if the answer fits, if the tool has no such schema, for an answer with IsError, and if Config.SkipOutputCheck is set. An
// answer with a flaw is a result all the same: the program decides what to do. Missing structured content is a flaw, and so is a
// schema that cannot be used: one of an unknown dialect, one that refers to another document (nothing is fetched), one that is
// too large or takes too long.
//
// The answer is compared when Flaw is first called: some 20 µs for a small one, at most about a second for the worst that a
// server can send; a program that never calls Flaw pays nothing. The server's own bytes are compared, not those that
// Config.Sanitize made of them.
func (r *Result) Flaw() string {
	if r == nil || r.outputFlaw == nil {
		return ""
	}
	return r.outputFlaw()
}

// Outcome returns OutcomeResult, or OutcomeToolError if IsError is set: the other outcomes come as an *Error, and a nil Result has none.
func (r *Result) Outcome() messages.Outcome {
	if r == nil {
		return ""
	}
	if r.IsError {
		return messages.OutcomeToolError
	}
	return messages.OutcomeResult
}

// Content is one part of a result. Only the fields of its type are set; Raw has the whole part as the server sent it.
type Content struct {
	Type     string          `json:"type"`
	Text     string          `json:"text,omitempty"`
	Data     string          `json:"data,omitempty"` // base64
	MIMEType string          `json:"mimeType,omitempty"`
	URI      string          `json:"uri,omitempty"`
	Name     string          `json:"name,omitempty"`
	Resource json.RawMessage `json:"resource,omitempty"`
	Raw      json.RawMessage `json:"-"`
}

// Content decodes the parts of the result. A part of an unknown type keeps its Raw. Member names count by their exact case, and
// of members with the same name the last, because most programs read JSON so: a person sees what they see. The error is an
// *Error of ClassProtocol. A nil Result has no parts.
func (r *Result) Content() ([]Content, error) {
	if r == nil {
		return nil, nil
	}
	list, err := partsOf(r.Raw, "content")
	if err != nil {
		return nil, &Error{Op: "decode", Class: messages.ClassProtocol, Text: "the result's content cannot be decoded: " + err.Error(), Err: err}
	}
	parts := make([]Content, len(list))
	for i, raw := range list {
		parts[i] = contentOf(raw)
	}
	return parts, nil
}

// Structured returns the member structuredContent, nil if there is none.
func (r *Result) Structured() json.RawMessage {
	if r == nil {
		return nil
	}
	return rawjson.Member(trimSpace(r.Raw), "structuredContent")
}

// Text returns the text parts, one per line, with a short remark in place of each other part. The bytes are the server's:
// messages.Printable makes them fit for a terminal. A nil Result, which comes with every error, has no text.
func (r *Result) Text() string {
	if r == nil {
		return ""
	}
	// Most results are one part of text: reading that needs no list of parts.
	if text, ok := onlyText(r.Raw); ok {
		return text
	}
	parts, err := r.Content()
	if err != nil {
		return string(r.Raw)
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch p.Type {
		case "text":
			b.WriteString(p.Text)
		case "image", "audio":
			fmt.Fprintf(&b, "[%s %s, %d bytes of base64]", p.Type, p.MIMEType, len(p.Data))
		case "resource_link":
			fmt.Fprintf(&b, "[link %s]", p.URI)
		case "resource":
			b.WriteString(resourceText(p.Resource))
		default:
			fmt.Fprintf(&b, "[%s]", p.Type)
		}
	}
	if len(parts) == 0 {
		if s := r.Structured(); s != nil {
			return string(s)
		}
	}
	return b.String()
}

// resourceText returns the text of an embedded resource, or a remark with its URI for one that has none (a blob, an empty text).
func resourceText(raw json.RawMessage) string {
	text, uri := "", ""
	if rawjson.IsObject(raw) {
		for o := rawjson.ObjectAt(raw, 0, 0); o.Next(); {
			switch value := o.Skip(); string(o.Name) {
			case "text":
				text, _ = rawjson.Text(value)
			case "uri":
				uri, _ = rawjson.Text(value)
			}
		}
	}
	if text != "" {
		return text
	}
	return fmt.Sprintf("[resource %s]", uri)
}

// CallTool runs a tool by its qualified name, mcp__{server}__{tool}. args is a JSON object: json.RawMessage, []byte,
// nil for none, or any value that marshals to an object. The call is bounded by ctx and by the server's call timeout,
// whichever is sooner.
//
// It ends exactly once: with a *Result (the tool ran; IsError says whether it failed) or with an *Error whose Outcome is
// rejected, not-sent or unknown. A call that may have run is never sent again, unless its server is trusted and marks
// the tool read-only or idempotent.
func (m *Manager) CallTool(ctx context.Context, name string, args any, opts ...CallOption) (*Result, error) {
	return m.callByName(ctx, "", name, args, opts)
}

// CallServerTool runs a tool by its server's id and the server's own name for it. A lazy server is connected first.
func (m *Manager) CallServerTool(
	ctx context.Context, server, tool string, args any, opts ...CallOption,
) (*Result, error) {
	return m.callByName(ctx, server, tool, args, opts)
}

// callByName runs a tool by its server and its own name, or, if server is empty, by its qualified name.
func (m *Manager) callByName(ctx context.Context, server, tool string, args any, opts []CallOption) (*Result, error) {
	if ctx == nil {
		return nil, refusal.NilContextError("call", server, tool)
	}
	r := actors.NewToolCall(server, tool)
	reports := m.setOptions(ctx, r, opts)
	buffer := m.writeArguments(ctx, r, args)
	err := m.calls.Handle(ctx, r)
	reports.awaitReports(ctx)
	// A panic passes by: the request and its buffer are then left to the garbage collector.
	if buffer != nil {
		releaseArguments(buffer)
	}
	if err != nil {
		r.Release()
		return nil, err
	}
	res := m.newResult(r)
	r.Release()
	return res, nil
}

// newResult makes the Result of a request. Its Flaw compares under the schema that the call was made under: the tool may have
// another one by then.
func (m *Manager) newResult(r *actors.Request) *Result {
	res := &Result{Raw: r.Result, IsError: r.Answer.IsError}
	if r.Entry != nil && len(r.Entry.Tool.OutputSchema) > 0 && len(r.Answer.Raw) > 0 && !res.IsError && !m.cfg.SkipOutputCheck {
		schema, raw := r.Entry.Tool.OutputSchema, r.Answer.Raw
		res.outputFlaw = sync.OnceValue(func() string { return m.outputs.Flaw(schema, raw) })
	}
	return res
}

// wakeServer connects a lazy server that rests, or waits for the attempt that runs already, and for its tools in the catalog.
func (m *Manager) wakeServer(ctx context.Context, name string) error {
	if err := m.runCommand(ctx, "connect", name, func(t uint64) lifecycle.Event { return lifecycle.Wake{Ticket: t} }); err != nil {
		return err
	}
	return m.awaitCatalog(ctx, "connect")
}
