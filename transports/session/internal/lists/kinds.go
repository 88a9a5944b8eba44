package lists

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/definitions"
)

// Tools is the list of tools. It is not optional: a server that declares tools must list them.
var Tools = Kind[messages.Tool]{
	Method: "tools/list", Member: "tools", Singular: "tool", Plural: "tools", Unique: "name",
	Read: func(raw []byte) (messages.Tool, string, string) {
		tool, reason := definitions.ReadTool(raw)
		return tool, tool.Name, reason
	},
}

// The kinds of the cached lists.
var (
	Resources = Kind[messages.Resource]{
		Method: "resources/list", Member: "resources", Singular: "resource", Plural: "resources", Unique: "URI", Read: definitions.ReadResource,
	}
	Templates = Kind[messages.ResourceTemplate]{
		Method: "resources/templates/list", Member: "resourceTemplates", Singular: "resource template",
		Plural: "resource templates", Unique: "URI template", Read: definitions.ReadTemplate,
		optional: true, // many servers with resources have no templates and do not know the method
	}
	Prompts = Kind[messages.Prompt]{
		Method: "prompts/list", Member: "prompts", Singular: "prompt", Plural: "prompts", Unique: "name", Read: definitions.ReadPrompt,
	}
)
