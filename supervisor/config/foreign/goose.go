package foreign

import (
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// gooseSections finds extensions in config.yaml. The extensions that are parts of Goose itself are named in one
// warning.
func gooseSections(r *fileReading) {
	if v, ok := valueAt(r.tree.Root, "extensions"); ok && !isNull(v) {
		r.addServers("extensions", v, nil)
	}
	// Some people carry the key of other programs over to this file.
	if v, ok := valueAt(r.tree.Root, "mcpServers"); ok && !isNull(v) {
		r.addServers("mcpServers", v, nil)
	}
	if n := len(r.builtins); n > 0 {
		what := "are parts of Goose itself and are not carried over"
		if n == 1 {
			what = "is a part of Goose itself and is not carried over"
		}
		r.addProblem(r.builtins[0].offset, "", "extensions", nameList(r.builtins)+" "+what, "", true)
	}
}

// nameList joins the names of the first entries for a sentence, with the number of the others.
func nameList(all []*entry) string {
	var said []string
	for i, e := range all {
		// One more name takes no more room than "1 more".
		if i == maxNames && len(all) > maxNames+1 {
			said = append(said, fmt.Sprintf("%d more", len(all)-maxNames))
			break
		}
		said = append(said, messages.Line(e.name, 40))
	}
	if n := len(said); n > 1 {
		return strings.Join(said[:n-1], ", ") + " and " + said[n-1]
	}
	return said[0]
}

// maxNames bounds how many extensions of Goose itself are named.
const maxNames = 4

// gooseEntry rewrites one extension of Goose. It reports false for those that run inside Goose, which no other program
// can start.
func gooseEntry(e *entry) bool {
	if m := e.findMember("type"); m != nil {
		switch kind, _ := textOf(m.Value); kind {
		// Disabled ones are not mentioned, because the person does not use them.
		case "builtin", "platform":
			if on, ok := valueAt(objectValue(0, e.members...), "enabled"); !ok || isTrue(on) {
				e.builtins = append(e.builtins, e)
			}
			return false
		case "frontend", "inline_python":
			e.warnLost(e.offset, "", "an extension of type "+kind+" runs inside of Goose and is not carried over", "")
			return false
		}
	} else if !e.hasAnyKey("cmd", "uri", "command", "url") {
		e.warnLost(e.offset, "", "it is no server: it has neither cmd nor uri", "")
		return false
	}
	// Goose derives the key from the name, so that both say the same.
	e.takeMember("name")
	e.fromVariables("env_keys", gooseEnv(e), "Goose keeps it in its store of secrets; here the variable is read")
	e.addSecondsUnit("timeout")
	e.allTools("available_tools", true)
	return true
}

// gooseEnv returns the key under which the entry has its variables, because two keys of one meaning would contradict
// each other.
func gooseEnv(e *entry) string {
	if e.hasAnyKey("env") {
		return "env"
	}
	return "envs"
}
