package supervisor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Declaration describes a tool to a model.
type Declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`

	// Kind and Server say to the agent whose tool it is: KindMCP and the server's id, or nothing for the agent's own tool. The
	// model does not see them, so that all tools look alike to it.
	Kind   Kind   `json:"-"`
	Server string `json:"-"`
}

// Kind says what implements a tool.
type Kind string

// KindMCP marks a tool of an MCP server.
const KindMCP Kind = "mcp"

// Handler runs a tool. The result has "content" (a list of parts as maps) and "isError", and "structuredContent" if the
// tool gave one; "_meta" and "resultType" are taken out, because they are meant for clients. A Go error means that the tool gave
// no answer: see [Error], and [ErrorResult].
type Handler func(ctx context.Context, params map[string]any) (map[string]any, error)

// AgentTool is one tool in the form that agents use for their own tools: a declaration, a handler and an output formatter. Its
// method set is small on purpose: an agent's own tools can have the same three methods, and one loop offers both.
type AgentTool interface {
	Declaration() Declaration
	Handler() Handler
	FormatOutput(result map[string]any) string
}

// AgentTools returns the tools of the named servers, or of all, as an agent's tools, from the newest snapshot. A tool whose
// server goes away stays callable as a value, and its calls end not-sent; take the list anew for each turn of a model. The error
// is that of ToolsOf.
func (m *Manager) AgentTools(ctx context.Context, servers ...string) ([]AgentTool, error) {
	entries, err := m.ToolsOf(ctx, servers...)
	if err != nil {
		return nil, err
	}
	tools := make([]AgentTool, len(entries))
	for i, e := range entries {
		tools[i] = &serverAgentTool{m: m, entry: e}
	}
	return tools, nil
}

// serverAgentTool is an AgentTool of a server. It keeps the definition of one snapshot and calls by name, so a call always goes to
// the tool that has the name then.
type serverAgentTool struct {
	m     *Manager
	entry *Entry
}

// Declaration describes the tool as it was in the snapshot that AgentTools read.
func (b *serverAgentTool) Declaration() Declaration {
	// The schema is cloned because the program may change what it gets; the snapshot's own is shared.
	t := b.entry.Tool
	return Declaration{Name: b.entry.Name, Description: t.Description, InputSchema: slices.Clone(t.InputSchema),
		Kind: KindMCP, Server: t.Server}
}

// Handler calls the tool by its qualified name and returns the result as maps. Nil params are no arguments.
func (b *serverAgentTool) Handler() Handler {
	return func(ctx context.Context, params map[string]any) (map[string]any, error) {
		var args any
		if params != nil {
			args = params
		}
		res, err := b.m.CallTool(ctx, b.entry.Name, args)
		if err != nil {
			return nil, err
		}
		// The result is decoded as maps, because an agent's loop passes on what it does not know.
		out := map[string]any{}
		if err := json.Unmarshal(res.Raw, &out); err != nil {
			return nil, &Error{Op: "decode", Class: messages.ClassProtocol, Server: b.entry.Tool.Server, Tool: b.entry.Tool.Name,
				Text: "the result is no JSON object: " + err.Error(), Err: err}
		}
		// These members are for clients; a model that read them would take them for the tool's answer.
		delete(out, "_meta")
		delete(out, "resultType")
		if out["content"] == nil {
			out["content"] = []any{}
		}
		out["isError"] = res.IsError
		return out, nil
	}
}

// FormatOutput returns the text of a result for a person or a model, with control characters made visible.
func (b *serverAgentTool) FormatOutput(result map[string]any) string { return formatOutput(result) }

// formatOutput writes the text of a result, with "error: " before that of a failed tool; a model might not see the difference.
func formatOutput(result map[string]any) string {
	raw, err := json.Marshal(result)
	if err != nil {
		return ""
	}
	text := messages.Printable((&Result{Raw: raw}).Text())
	if failed, _ := result["isError"].(bool); failed {
		return "error: " + text
	}
	return text
}

// ErrorResult turns an error of a Handler into the form of a tool's own failure, for loops that feed every end of a call to
// the model: the text names the server and says whether the call may have run.
func ErrorResult(err error) map[string]any {
	return map[string]any{
		"content": []any{map[string]any{"type": "text", "text": err.Error()}}, "isError": true,
	}
}
