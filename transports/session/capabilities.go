package session

import (
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// Capabilities are the features that a server declares in the handshake.
type Capabilities struct {
	// Tools is true if the server has tools, ToolsListChanged if it announces changes of their list; the same for resources
	// and prompts.
	Tools, ToolsListChanged         bool
	Resources, ResourcesListChanged bool
	Prompts, PromptsListChanged     bool
	// ResourcesSubscribe is true if a client can watch single resources.
	ResourcesSubscribe bool
	// Completions is true if the server completes arguments, Logging if it sends log messages.
	Completions, Logging bool
	// ToolTasks is true if calls can run as tasks: in the core of 2025-11-25 (tasks.requests.tools.call), or by the extension
	// of 2026-07-28. TasksList and TasksCancel are of the legacy era.
	ToolTasks, TasksList, TasksCancel bool
	// Raw is the whole object as the server sent it; nil if there was none.
	Raw json.RawMessage
	// tasks is true if the member tasks is there, coreTasks if it names tools/call. Legacy requests about tasks need the
	// first, calls as tasks the second.
	tasks, coreTasks bool
}

// TasksExtension is the identifier of the tasks extension of 2026-07-28.
const TasksExtension = "io.modelcontextprotocol/tasks"

// readCapabilities reads the member capabilities, of either era. A capability is declared by any value but null and
// false: the specification has objects, and a server that writes true is understood, too.
func readCapabilities(raw []byte) (c Capabilities) {
	if !rawjson.IsObject(raw) {
		return c
	}
	c.Raw = raw
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		// A server may declare a capability and no announcements of changes; announcements without the capability
		// count as none.
		declared := !rawjson.IsNull(value) && string(value) != "false"
		changes := declared && jsonrpc.IsTrue(rawjson.Member(value, "listChanged"))
		switch string(m.Name) {
		case "logging":
			c.Logging = declared
		case "completions":
			c.Completions = declared
		case "tools":
			c.Tools, c.ToolsListChanged = declared, changes
		case "prompts":
			c.Prompts, c.PromptsListChanged = declared, changes
		case "resources":
			c.Resources, c.ResourcesListChanged = declared, changes
			c.ResourcesSubscribe = declared && jsonrpc.IsTrue(rawjson.Member(value, "subscribe"))
		case "tasks":
			// The path of the legacy era: tasks.requests.tools.call.
			call := rawjson.Member(rawjson.Member(rawjson.Member(value, "requests"), "tools"), "call")
			c.tasks, c.coreTasks = declared, !rawjson.IsNull(call)
			c.ToolTasks = c.ToolTasks || c.coreTasks
			c.TasksList, c.TasksCancel = !rawjson.IsNull(rawjson.Member(value, "list")), !rawjson.IsNull(rawjson.Member(value, "cancel"))
		case "extensions":
			c.ToolTasks = c.ToolTasks || !rawjson.IsNull(rawjson.Member(value, TasksExtension))
		}
	}
	return c
}
