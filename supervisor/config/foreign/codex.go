package foreign

import (
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
)

// codexSections finds [mcp_servers.NAME] in config.toml, also under names that people mistake for it. The plugins of
// Codex are JSON files with mcpServers.
func codexSections(r *fileReading) {
	for _, m := range membersOf(r.tree.Root) {
		key, list := nameOf(m), m.Value
		// VS Code has mcp.servers, which some people carry over.
		if servers, ok := valueAt(m.Value, "servers"); ok && key == "mcp" {
			key, list = "mcp.servers", servers
		}
		// Codex reads no other spelling than mcp_servers, so that such a file works here and not there; the warning
		// says so.
		switch plain := strings.NewReplacer("-", "_", ".", "_").Replace(key); key {
		default:
			if plain != "mcp_servers" && plain != "mcp_server" && plain != "mcpservers" {
				continue
			}
			fallthrough
		case "mcp_servers", "mcpServers":
			if key != "mcp_servers" && r.syntax == inTOML {
				r.addProblem(m.Name.StartOffset, "", key, "Codex reads mcp_servers, not "+messages.Line(key, 40)+"; it is read here", "", true)
			}
			r.addServers(key, list, nil)
		// These keys concern the sign-in to every server, and config has them in each entry.
		case "mcp_oauth_callback_port", "mcp_oauth_callback_url":
			r.addProblem(m.Name.StartOffset, "", key, "it is not carried over",
				"write callbackPort or redirectUrl into the auth of a server that needs it", true)
		}
	}
}

// codexEntry rewrites one table of Codex. It reports false for a table that only changes a server of another file.
func codexEntry(e *entry) bool {
	if !e.hasAnyKey("command", "url") && e.dropOverlay() {
		return false
	}
	// Codex passes only variables that the entry lists, and config does the same with ${NAME}.
	e.fromVariables("env_vars", "env", "")
	e.headersFromVariables()
	if m, ok := e.takeMember("bearer_token"); ok {
		e.reportUnusable(m.Value.StartOffset, "bearer_token", "Codex itself refuses a token in the file",
			"write bearer_token_env_var with the name of a variable")
	}
	// The value is a name. A person who writes $NAME means the same.
	if m := e.findMember("bearer_token_env_var"); m != nil {
		if s, ok := textOf(m.Value); ok && strings.HasPrefix(s, "$") {
			e.warnLost(m.Value.StartOffset, "bearer_token_env_var", "it is the name of a variable, without $", "write it without $")
			m.Value = textValue(strings.Trim(s, "${}"), m.Value.StartOffset)
		}
	}
	// The key is a word here and an object in config.
	if m, ok := e.takeMember("auth"); ok {
		// An object under oauth makes the reader of config start a sign-in.
		if s, _ := textOf(m.Value); s == "oauth" {
			e.mergeInto("oauth", m.Value.StartOffset)
		} else {
			e.reportUnusable(m.Value.StartOffset, "auth", "this way to sign in is Codex's own", "write oauth, or remove the key")
		}
	}
	e.signIn("scopes", "scopes")
	e.signIn("oauth_resource", "resource")
	if m, ok := e.takeMember("required"); ok && isTrue(m.Value) {
		e.warnLost(m.Name.StartOffset, "required", "nothing waits for a server that is required", "")
	}
	// Codex knows no SSE.
	e.onlyHTTP()
	// The table holds the approval mode of each tool, and names no tool as allowed.
	if m, ok := e.takeMember("tools"); ok && len(membersOf(m.Value)) > 0 {
		e.warnLost(m.Name.StartOffset, "tools", notCarriedOver, permissionHint)
	}
	return true
}

// notCarriedOver is the text about every key that decides about which calls a person is asked.
const notCarriedOver = "who is asked before a call is not carried over"

// permissionHint is the fix that goes with notCarriedOver.
const permissionHint = `write rules of your own: "permissions": {"ask": ["mcp__server__tool"]}; see: mcpvisor permissions`

// dropOverlay reports whether the entry only changes a server that another file defines, and then warns that it is left
// out. The caller has found neither a command nor a URL in it.
func (e *entry) dropOverlay() bool {
	for _, m := range e.members {
		// These keys change a server and cannot define one. Any other key is a mistake that the reader of config
		// reports.
		switch nameOf(m) {
		case "enabled", "disabled", "tools", "enabled_tools", "disabled_tools", "default_tools_approval_mode", "env", "environment",
			"startup_timeout_sec", "tool_timeout_sec", "required", "timeout", "env_vars":
		default:
			return false
		}
	}
	if len(e.members) == 0 {
		e.warnLost(e.offset, "", "it is empty, and no server", "")
		return true
	}
	e.warnLost(e.offset, "", "it changes a server of another "+e.title+" file and is none by itself; it is not carried over", "")
	return true
}

// headersFromVariables turns env_http_headers, which maps headers to names of variables, into headers with ${NAME}.
// Headers that are written out win.
func (e *entry) headersFromVariables() {
	list, ok := e.takeMember("env_http_headers")
	if !ok {
		return
	}
	// Two keys of one meaning would contradict each other in the reader of config.
	to := "headers"
	if e.hasAnyKey("http_headers") {
		to = "http_headers"
	}
	// The value of a header is the whole variable.
	for _, m := range membersOf(list.Value) {
		s, isText := textOf(m.Value)
		if !isText || !isName(s) {
			e.reportUnusable(m.Value.StartOffset, "env_http_headers."+nameOf(m), "it is no name of a variable", `write "NAME"`)
			continue
		}
		at := m.Value.StartOffset
		e.mergeInto(to, at, hujson.ObjectMember{Name: m.Name, Value: textValue("${"+s+"}", at)})
	}
}

// signIn moves a key that stands beside oauth into the object under oauth. Spelled keeps its place outside, for
// problems.
func (e *entry) signIn(from, to string) {
	if m, ok := e.takeMember(from); ok {
		// The reader would otherwise show a path below oauth that is not in the file.
		e.tree.Spelled[m.Name.StartOffset] = from
		e.mergeInto("oauth", m.Name.StartOffset, newMember(to, m.Name.StartOffset, m.Value))
	}
}
