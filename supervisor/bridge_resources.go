package supervisor

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The names of the tools by which a model finds and reads resources. They are those of Claude Code, so that prompts and rules
// written for it apply.
const (
	ListResourcesTool = "ListMcpResources"
	ReadResourceTool  = "ReadMcpResource"
)

// ResourceTools returns two tools beside AgentTools, with which a model finds and reads the resources of servers:
// ListMcpResources (of all servers, or one) and ReadMcpResource (of a server by its id, or of the one that offers the URI).
func (m *Manager) ResourceTools() []AgentTool {
	return []AgentTool{
		&builtinAgentTool{
			declaration: Declaration{
				Name: ListResourcesTool, Kind: KindMCP,
				Description: "Lists the resources that the connected MCP servers let be read: server, uri, name, mimeType and " +
					"description of each.",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string",` +
					`"description":"the id of a server, to list only its resources"}},"additionalProperties":false}`),
			},
			handler: m.listForAgent,
		},
		&builtinAgentTool{
			declaration: Declaration{
				Name: ReadResourceTool, Kind: KindMCP,
				Description: "Reads a resource of an MCP server by its URI.",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string",` +
					`"description":"the id of the server"},"uri":{"type":"string","description":"the URI of the resource"}},` +
					`"required":["server","uri"],"additionalProperties":false}`),
			},
			handler: m.readForAgent,
		},
	}
}

// builtinAgentTool is an AgentTool that the manager implements itself.
type builtinAgentTool struct {
	declaration Declaration
	handler     Handler
}

func (t *builtinAgentTool) Declaration() Declaration                  { return t.declaration }
func (t *builtinAgentTool) Handler() Handler                          { return t.handler }
func (t *builtinAgentTool) FormatOutput(result map[string]any) string { return formatOutput(result) }

// listForAgent is the handler of ListMcpResources. The resources of the servers that answer are listed, and the text names those
// that do not; it fails only if there is nothing to list.
func (m *Manager) listForAgent(ctx context.Context, params map[string]any) (map[string]any, error) {
	server, err := textParam(params, "server", false)
	if err != nil {
		return nil, err
	}
	// No name means all servers, in this package's convention an empty list.
	var servers []string
	if server != "" {
		servers = []string{server}
	}
	list, err := m.Resources(ctx, servers...)
	if err != nil && len(list) == 0 {
		return nil, err
	}
	// The list is one text part in JSON: models read that better than many parts.
	raw, encoding := json.Marshal(list)
	if encoding != nil {
		return nil, &Error{Op: "decode", Class: messages.ClassProtocol, Text: "the list cannot be written as JSON", Err: encoding}
	}
	content := []any{map[string]any{"type": "text", "text": string(raw)}}
	if err != nil {
		content = append(content, map[string]any{"type": "text", "text": "not listed: " + err.Error()})
	}
	return map[string]any{"content": content, "isError": false}, nil
}

// readForAgent is the handler of ReadMcpResource. Without a server id the index of lists decides which server offers the URI. A
// content that is no object is left out.
func (m *Manager) readForAgent(ctx context.Context, params map[string]any) (map[string]any, error) {
	server, err := textParam(params, "server", false)
	if err != nil {
		return nil, err
	}
	uri, err := textParam(params, "uri", true)
	if err != nil {
		return nil, err
	}
	// The schema of the tool demands a server, but models leave out required members.
	var res *ResourceResult
	if server == "" {
		res, err = m.ReadResource(ctx, uri)
	} else {
		res, err = m.ReadServerResource(ctx, server, uri)
	}
	if err != nil {
		return nil, err
	}
	content := []any{}
	for _, c := range res.Contents() {
		// Each content is embedded as the server gave it, base64 included.
		part := map[string]any{}
		if json.Unmarshal(c.Raw, &part) == nil {
			content = append(content, map[string]any{"type": "resource", "resource": part})
		}
	}
	return map[string]any{"content": content, "isError": false}, nil
}

// textParam reads a text from a model's arguments. A model may send anything, so another type is an error of ClassInvalid, whose
// text the model can act on.
func textParam(params map[string]any, name string, needed bool) (string, error) {
	// A missing parameter and an empty text are the same to a model.
	text, ok := params[name].(string)
	if !ok && params[name] != nil || needed && text == "" {
		return "", &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: name + " must be a text"}
	}
	return text, nil
}
