package session

import "github.com/mcpvisor/mcpvisor/messages"

// toolKind is the list of tools. It is not optional: a server that declares tools must list them.
var toolKind = listKind[messages.Tool]{
	method: "tools/list", member: "tools", singular: "tool", plural: "tools", unique: "name",
	read: func(raw []byte) (messages.Tool, string, string) {
		tool, reason := readTool(raw)
		return tool, tool.Name, reason
	},
}

// The kinds of the cached lists.
var (
	resourceKind = listKind[messages.Resource]{
		method: "resources/list", member: "resources", singular: "resource", plural: "resources", unique: "URI", read: readResource,
	}
	templateKind = listKind[messages.ResourceTemplate]{
		method: "resources/templates/list", member: "resourceTemplates", singular: "resource template",
		plural: "resource templates", unique: "URI template", read: readTemplate,
		optional: true, // many servers with resources have no templates and do not know the method
	}
	promptKind = listKind[messages.Prompt]{
		method: "prompts/list", member: "prompts", singular: "prompt", plural: "prompts", unique: "name", read: readPrompt,
	}
)
