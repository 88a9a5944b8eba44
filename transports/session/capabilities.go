package session

import (
	"encoding/json"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Capabilities are what a server declares that it can do.
type Capabilities struct {
	// Tools says that there are tools, ToolsListChanged that the server tells when they change; the same for the others.
	Tools, ToolsListChanged         bool
	Resources, ResourcesListChanged bool
	Prompts, PromptsListChanged     bool
	// ResourcesSubscribe says that single resources can be watched.
	ResourcesSubscribe bool
	// Completions says that the server completes arguments, Logging that it sends log messages.
	Completions, Logging bool
	// ToolTasks says that calls can run as tasks: in the core of 2025-11-25 (tasks.requests.tools.call), or by the
	// extension of 2026-07-28. TasksList and TasksCancel are the legacy era's.
	ToolTasks, TasksList, TasksCancel bool
	// Raw is the whole object as sent; nil if there was none.
	Raw json.RawMessage
	// tasks says that the member tasks is there, coreTasks that it names tools/call.
	tasks, coreTasks bool
}

// TasksExtension is the identifier of the tasks extension of 2026-07-28.
const TasksExtension = "io.modelcontextprotocol/tasks"

func readCapabilities(raw []byte) (c Capabilities) {
	if !isObject(raw) {
		return c
	}
	c.Raw = raw
	m := objectAt(raw, 0, 0)
	for m.next() {
		value := m.skip()
		declared := !isNull(value) && string(value) != "false"
		changes := declared && isTrue(memberOf(value, "listChanged"))
		switch string(m.key) {
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
			c.ResourcesSubscribe = declared && isTrue(memberOf(value, "subscribe"))
		case "tasks":
			call := memberOf(memberOf(memberOf(value, "requests"), "tools"), "call")
			c.tasks, c.coreTasks = declared, !isNull(call)
			c.ToolTasks = c.ToolTasks || c.coreTasks
			c.TasksList, c.TasksCancel = !isNull(memberOf(value, "list")), !isNull(memberOf(value, "cancel"))
		case "extensions":
			c.ToolTasks = c.ToolTasks || !isNull(memberOf(value, TasksExtension))
		}
	}
	return c
}

func isTrue(value []byte) bool { return string(value) == "true" }

func readServerInfo(raw []byte) (info messages.ServerInfo) {
	if !isObject(raw) {
		return info
	}
	m := objectAt(raw, 0, 0)
	for m.next() {
		value := m.skip()
		switch string(m.key) {
		case "name":
			info.Name, _ = textOf(value)
		case "version":
			info.Version, _ = textOf(value)
		case "title":
			info.Title, _ = textOf(value)
		case "description":
			info.Description, _ = textOf(value)
		case "websiteUrl":
			info.WebsiteURL, _ = textOf(value)
		case "icons":
			info.Icons = readIcons(value)
		}
	}
	return info
}

// maxIcons bounds the icons of one thing.
const maxIcons = 16

// readIcons keeps the icons whose source is safe.
//
// 2026-07-28, icons: "Ensure that the icon URI is either a HTTPS or data: URI. Clients MUST reject icon URIs that use unsafe
// schemes and redirects, such as javascript:, file:, ftp:, ws:, or local app URI schemes."
func readIcons(raw []byte) (icons []messages.Icon) {
	if !isArray(raw) {
		return nil
	}
	list := arrayAt(raw, 0, 0)
	for list.next() {
		value := list.skip()
		if !isObject(value) || len(icons) == maxIcons {
			continue
		}
		var icon messages.Icon
		m := objectAt(value, 0, 0)
		for m.next() {
			value := m.skip()
			switch string(m.key) {
			case "src":
				icon.Src, _ = textOf(value)
			case "mimeType":
				icon.MIMEType, _ = textOf(value)
			case "sizes":
				icon.Sizes = textsOf(value, 32)
			case "theme":
				icon.Theme, _ = textOf(value)
			}
		}
		if safeIcon(icon.Src) {
			icons = append(icons, icon)
		}
	}
	return icons
}

func safeIcon(src string) bool {
	for _, scheme := range []string{"https://", "data:"} {
		if len(src) > len(scheme) && strings.EqualFold(src[:len(scheme)], scheme) {
			return true
		}
	}
	return false
}
