package foreign

import "github.com/tailscale/hujson"

// zedSections finds context_servers in settings.json.
func zedSections(r *fileReading) {
	if v, ok := valueAt(r.tree.Root, "context_servers"); ok {
		r.addServers("context_servers", v, nil)
	}
	// An old file would otherwise look empty without a reason.
	if old, ok := valueAt(r.tree.Root, "experimental"); ok {
		if m := memberOf(old, "context_servers"); m != nil {
			r.addProblem(m.Name.StartOffset, "", "experimental.context_servers", "Zed itself does not read this form any more",
				`write "context_servers": {"name": {"command": "…"}}`, true)
		}
	}
}

// zedEntry rewrites one context server of Zed. It reports false for a server whose command comes from a Zed extension.
func zedEntry(e *entry) bool {
	// The key says whether the entry is from the person or an extension, which its other keys show as well.
	e.takeMember("source")
	// In the older form, command is an object with path and args.
	if m := e.findMember("command"); m != nil && m.Value.Value.Kind() == '{' {
		e.liftCommand()
	}
	if !e.hasAnyKey("command", "url") {
		what := "its command comes with a Zed extension, which is not carried over"
		e.warnLost(e.offset, "", what, "write its command or url")
		return false
	}
	if m, ok := e.takeMember("settings"); ok && len(membersOf(m.Value)) > 0 {
		e.warnLost(m.Name.StartOffset, "settings", "settings are read by Zed's own extensions, and are not carried over", "")
	}
	if m, ok := e.takeMember("remote"); ok && isTrue(m.Value) {
		e.warnLost(m.Name.StartOffset, "remote", "Zed runs it on the machine of a remote project; here it runs on this one", "")
	}
	// Zed has one timeout for all servers, in seconds, which an entry may override.
	if v, ok := valueAt(e.tree.Root, "context_server_timeout"); ok && !e.hasAnyKey("timeout") {
		e.addMember("timeout", v.StartOffset, v)
	}
	e.addSecondsUnit("timeout")
	e.onlyHTTP()
	return true
}

// liftCommand moves path, args and env from the object under command into the entry. Keys of the entry itself win.
func (e *entry) liftCommand() {
	m, _ := e.takeMember("command")
	for _, part := range membersOf(m.Value) {
		switch key := nameOf(part); key {
		case "path", "command", "args", "env", "cwd", "timeout":
			// Zed calls the program path.
			if key == "path" {
				key = "command"
			}
			if !isNull(part.Value) && !e.hasAnyKey(key) {
				e.tree.Spelled[part.Name.StartOffset] = "command." + nameOf(part)
				e.members = append(e.members, hujson.ObjectMember{Name: textValue(key, part.Name.StartOffset), Value: part.Value})
			}
		default:
			e.warnLost(part.Name.StartOffset, "command."+key, "it is not carried over", "")
		}
	}
}
