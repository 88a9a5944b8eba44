package supervisor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Declaration is what a model is told of a tool.
type Declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`

	// Kind and Server say whose tool it is, for the agent: KindMCP and the server's id, or nothing for its own. A model is
	// not told, so that all tools look alike to it.
	Kind   Kind   `json:"-"`
	Server string `json:"-"`
}

// Kind is what stands behind a tool.
type Kind string

// KindMCP is a tool of an MCP server.
const KindMCP Kind = "mcp"

// Handler runs a tool. The result has "content" (a list of parts as maps) and "isError", and "structuredContent" if the
// tool gave one, and not "_meta" and "resultType", which are for clients. A Go error means that there is no answer of
// the tool: see Error, and ErrorResult.
type Handler func(ctx context.Context, params map[string]any) (map[string]any, error)

// AgentTool is one tool as an agent treats its own: a declaration, a handler and an output formatter. Its method set is
// small on purpose: an agent's own tools can have the same three methods, and one loop offers both.
type AgentTool interface {
	Declaration() Declaration
	Handler() Handler
	FormatOutput(result map[string]any) string
}

// AgentTools is the tools of the named servers, or of all, as an agent's tools, from the newest snapshot. A tool whose
// server goes away stays callable as a value and ends not-sent; take the list anew for each turn of a model.
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

type serverAgentTool struct {
	m     *Manager
	entry *Entry
}

func (b *serverAgentTool) Declaration() Declaration {
	t := b.entry.Tool
	return Declaration{Name: b.entry.Name, Description: t.Description, InputSchema: slices.Clone(t.InputSchema),
		Kind: KindMCP, Server: t.Server}
}

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
		out := map[string]any{}
		if err := json.Unmarshal(res.Raw, &out); err != nil {
			return nil, &Error{Op: "decode", Class: messages.ClassProtocol, Server: b.entry.Tool.Server, Tool: b.entry.Tool.Name,
				Text: "the result is no JSON object: " + err.Error(), Err: err}
		}
		// What the protocol says to a client is nothing for a model to read.
		delete(out, "_meta")
		delete(out, "resultType")
		if out["content"] == nil {
			out["content"] = []any{}
		}
		out["isError"] = res.IsError
		return out, nil
	}
}

// FormatOutput is the text of a result, neutralised, for a person or a model to read.
func (b *serverAgentTool) FormatOutput(result map[string]any) string { return formatOutput(result) }

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

// ErrorResult is an error of a Handler in the form of a tool's own failure, for loops that feed every end of a call to
// the model: the text names the server and says whether the call may have run.
func ErrorResult(err error) map[string]any {
	return map[string]any{
		"content": []any{map[string]any{"type": "text", "text": err.Error()}}, "isError": true,
	}
}
