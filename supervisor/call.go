package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

func timeSince(t time.Time) time.Duration { return time.Since(t) }

// Result is what a tool answered.
type Result struct {
	// Raw is the server's result object, byte for byte (or what Config.Sanitize made of it). It is untrusted.
	Raw json.RawMessage
	// IsError says that the tool itself failed: outcome OutcomeToolError. It is not a Go error, because a model should
	// read it.
	IsError bool

	outputFlaw func() string
}

// Flaw says how the answer misses what the tool's output schema promises, in one line that is fit for a terminal; empty
// if it does not, if the tool has no such schema, for an answer with IsError, and if Config.SkipOutputCheck is set. An
// answer with a flaw is a result all the same. Missing structured content is one, and so is a schema that cannot be
// used: one of an unknown dialect, one that refers to another document (nothing is fetched), one that is too large or
// takes too long.
//
// The answer is compared when Flaw is first called: some 20 µs for a small one, at most about a second for whatever a
// server sends, and nothing for whoever does not ask. What Config.Sanitize does to the answer is not judged.
func (r *Result) Flaw() string {
	if r.outputFlaw == nil {
		return ""
	}
	return r.outputFlaw()
}

// withOutputCheck gives a result its Flaw.
func (m *Manager) withOutputCheck(to *Result, from session.Result) *Result {
	if len(from.OutputSchema) > 0 && !from.IsError && !m.cfg.SkipOutputCheck {
		to.outputFlaw = sync.OnceValue(func() string { return m.outputs.Flaw(from.OutputSchema, from.Raw) })
	}
	return to
}

// Outcome is OutcomeResult or OutcomeToolError.
func (r *Result) Outcome() messages.Outcome {
	if r.IsError {
		return messages.OutcomeToolError
	}
	return messages.OutcomeResult
}

// Content is one part of a result. Only the fields of its type are set; Raw has all of them.
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

// Content decodes the parts of the result. A part of an unknown type keeps its Raw. Names count as they are written, and of
// doubled ones the last: a person reads what programs read.
func (r *Result) Content() ([]Content, error) {
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

// Structured is structuredContent, nil if there is none.
func (r *Result) Structured() json.RawMessage {
	return rawjson.Member(trimSpace(r.Raw), "structuredContent")
}

// Text is the text parts, one per line, with a short remark in place of each other part. It is as the server sent it:
// messages.Printable makes it fit for a terminal.
func (r *Result) Text() string {
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
// nil for none, or anything that marshals to an object. The call is bounded by ctx and by the server's call timeout,
// whichever is sooner.
//
// It ends exactly once: with a *Result (the tool ran; IsError says how it went) or with an *Error whose Outcome is
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
	raw, err := marshalArguments(args)
	if m.audit != nil {
		return m.audit.auditCall(ctx, server, tool, raw, opts, err)
	}
	if err != nil {
		return nil, err
	}
	return m.runCall(ctx, server, tool, raw, opts)
}

func (m *Manager) runCall(
	ctx context.Context, server, tool string, raw json.RawMessage, opts []CallOption,
) (*Result, error) {
	if m.closing.Load() {
		return nil, closedError("call")
	}
	var res session.Result
	var err error
	if server == "" {
		res, err = m.calls.Call(ctx, tool, raw, m.sessionOptions(opts))
	} else {
		res, err = m.calls.CallServer(ctx, server, tool, raw, m.sessionOptions(opts))
	}
	if err != nil {
		return nil, err
	}
	return m.withOutputCheck(m.newResult(server, tool, res.Raw, res.IsError), res), nil
}

func (m *Manager) newResult(server, tool string, raw json.RawMessage, isError bool) *Result {
	if m.cfg.Sanitize != nil {
		var entry *Entry
		var ok bool
		if server == "" {
			entry, ok = m.Tools().Lookup(tool)
		} else {
			entry, ok = m.Tools().LookupTool(server, tool)
		}
		t := &Tool{} // it was withdrawn in the meantime
		switch {
		case ok:
			t = entry.Tool
		case server != "":
			t.Server, t.Name = server, tool
		}
		raw = m.cfg.Sanitize(t, raw)
	}
	return &Result{Raw: raw, IsError: isError}
}

// marshalArguments is args as JSON. Whether it is an object is checked where it is sent.
func marshalArguments(args any) (json.RawMessage, error) {
	switch a := args.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return a, nil
	case []byte:
		return a, nil
	case map[string]any:
		if a == nil {
			return nil, nil // no arguments
		}
		if raw, ok := rawjson.AppendValue(nil, a); ok {
			return raw, nil
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
			Text: "the arguments cannot be written as JSON: " + err.Error(), Err: err}
	}
	if string(raw) == "null" {
		return nil, nil // a nil map is no arguments too
	}
	return raw, nil
}

// wakeServer connects a lazy server that rests, or waits for the attempt that is under way.
func (m *Manager) wakeServer(ctx context.Context, name string) error {
	if err := m.runCommand(ctx, "connect", name, func(t uint64) lifecycle.Event { return lifecycle.Wake{Ticket: t} }); err != nil {
		return err
	}
	return m.awaitCatalog(ctx, "connect")
}
