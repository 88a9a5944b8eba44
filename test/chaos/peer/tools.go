package peer

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// tool is one entry of the list as it is sent. hint is the member of its annotations, if it has any. broken says that no
// client can use it: it is no part of the true list. from is the fault that it comes from.
type tool struct {
	name, hint, definition string
	// tasks is what it says of calls that run as tasks, empty if nothing.
	tasks  string
	broken bool
	from   *fault
}

const (
	toolInput = `{"type":"object","properties":{"call":{"type":"string"},"size":{"type":"integer","minimum":0}}}`
	// toolOutput is the schema of the structured result.
	toolOutput = `{"type":"object","properties":{"value":{"type":"integer"}},"required":["value"]}`
)

// define makes a tool.
func define(name, description, hint string) tool {
	d := `{"name":` + quote(name) + `,"description":` + quote(description) + `,"inputSchema":` + toolInput +
		`,"outputSchema":` + toolOutput
	if hint != "" {
		d += `,"annotations":{` + quote(hint) + `:true}`
	}
	return tool{name: name, hint: hint, definition: d + "}"}
}

// described is the same tool with another description.
func (t tool) described(as string) tool { return define(t.name, as, t.hint).asTask(t.tasks) }

// asTask is the same tool whose calls can, or must, run as tasks (2025-11-25, Tool-Level Negotiation).
func (t tool) asTask(support string) tool {
	if t.tasks = support; support != "" {
		t.definition = t.definition[:len(t.definition)-1] + `,"execution":{"taskSupport":` + quote(support) + `}}`
	}
	return t
}

// list is the server's true tool list.
type list struct {
	tools []tool
	// rev counts its states, from 1; told says that the first one has been noted.
	rev  int
	told bool
	// changes counts what the changes made, for their names.
	changes int
}

func (l *list) fill(count int, tasks string) {
	l.rev = 1
	l.tools = []tool{
		define("read", "Reads how often it was read.", "readOnlyHint"),
		define("put", "Puts a value where it may be already.", "idempotentHint"),
		define("write", "Writes one more value.", ""),
	}
	for i := 3; i < count; i++ {
		l.tools = append(l.tools, define(fmt.Sprintf("tool-%d", i), "Does what write does.", ""))
	}
	l.tools = l.tools[:min(count, len(l.tools))]
	for i, t := range l.tools {
		l.tools[i] = t.asTask(tasks)
	}
}

// announce notes the first state of the list before anything else is noted.
func (m *machine) announce() {
	if !m.list.told {
		m.list.told = true
		m.noteList()
	}
}

// changed notes that the list is another one now.
func (m *machine) changed() {
	m.announce()
	m.list.rev++
	m.noteList()
}

// noteList notes the list as a client that makes no mistake sees it: of two tools with one name the first, and none that
// cannot be used.
func (m *machine) noteList() {
	var names []string
	var tools []messages.Tool
	seen := make(map[string]bool)
	for _, t := range m.listed() {
		if !t.broken && !seen[t.name] {
			seen[t.name] = true
			names = append(names, t.name)
			tools = append(tools, messages.Tool{Name: t.name, Raw: json.RawMessage(t.definition)})
		}
	}
	slices.Sort(names)
	m.note(history.Event{Kind: history.Changed, Rev: m.list.rev, Hash: history.HashTools(tools), Names: names})
}

// listed is the list as it is sent, with what the faults add to it.
func (m *machine) listed() []tool {
	all := m.list.tools
	for _, f := range m.faults {
		if f.hooks.tools != nil {
			all = f.hooks.tools(f, slices.Clip(all))
		}
	}
	return all
}

// find is the tool that a name means.
func (m *machine) find(name string) (tool, bool) {
	all := m.listed()
	i := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{}, false
	}
	return all[i], true
}
