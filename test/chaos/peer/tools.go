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
	// taskSupport is what it says of calls that run as tasks, empty if nothing.
	taskSupport string
	broken      bool
	from        *fault
}

const (
	toolInput = `{"type":"object","properties":{"call":{"type":"string"},"size":{"type":"integer","minimum":0}}}`
	// toolOutput is the schema of the structured result.
	toolOutput = `{"type":"object","properties":{"value":{"type":"integer"}},"required":["value"]}`
)

// newTool makes a tool.
func newTool(name, description, hint string) tool {
	d := `{"name":` + quoteJSON(name) + `,"description":` + quoteJSON(description) + `,"inputSchema":` + toolInput +
		`,"outputSchema":` + toolOutput
	if hint != "" {
		d += `,"annotations":{` + quoteJSON(hint) + `:true}`
	}
	return tool{name: name, hint: hint, definition: d + "}"}
}

// withDescription is the same tool with another description.
func (t tool) withDescription(as string) tool {
	return newTool(t.name, as, t.hint).withTaskSupport(t.taskSupport)
}

// withTaskSupport is the same tool whose calls can, or must, run as tasks (2025-11-25, Tool-Level Negotiation).
func (t tool) withTaskSupport(support string) tool {
	if t.taskSupport = support; support != "" {
		t.definition = t.definition[:len(t.definition)-1] + `,"execution":{"taskSupport":` + quoteJSON(support) + `}}`
	}
	return t
}

// toolList is the server's true tool list.
type toolList struct {
	tools []tool
	// rev counts its states, from 1; told says that the first one has been noted.
	rev       int
	announced bool
	// changes counts what the changes made, for their names.
	changes int
}

func (l *toolList) fillTools(count int, tasks string) {
	l.rev = 1
	l.tools = []tool{
		newTool("read", "Reads how often it was read.", "readOnlyHint"),
		newTool("put", "Puts a value where it may be already.", "idempotentHint"),
		newTool("write", "Writes one more value.", ""),
	}
	for i := 3; i < count; i++ {
		l.tools = append(l.tools, newTool(fmt.Sprintf("tool-%d", i), "Does what write does.", ""))
	}
	l.tools = l.tools[:min(count, len(l.tools))]
	for i, t := range l.tools {
		l.tools[i] = t.withTaskSupport(tasks)
	}
}

// announceTools notes the first state of the list before anything else is noted.
func (m *machine) announceTools() {
	if !m.list.announced {
		m.list.announced = true
		m.recordList()
	}
}

// recordListChange notes that the list is another one now.
func (m *machine) recordListChange() {
	m.announceTools()
	m.list.rev++
	m.recordList()
}

// recordList notes the list as a client that makes no mistake sees it: of two tools with one name the first, and none that
// cannot be used.
func (m *machine) recordList() {
	var names []string
	var tools []messages.Tool
	seen := make(map[string]bool)
	for _, t := range m.listedTools() {
		if !t.broken && !seen[t.name] {
			seen[t.name] = true
			names = append(names, t.name)
			tools = append(tools, messages.Tool{Name: t.name, Raw: json.RawMessage(t.definition)})
		}
	}
	slices.Sort(names)
	m.recordEvent(history.Event{Kind: history.Changed, Rev: m.list.rev, Hash: history.HashTools(tools), Names: names})
}

// listedTools is the list as it is sent, with what the faults add to it.
func (m *machine) listedTools() []tool {
	all := m.list.tools
	for _, f := range m.activeFaults {
		if f.hooks.editTools != nil {
			all = f.hooks.editTools(f, slices.Clip(all))
		}
	}
	return all
}

// findTool is the tool that a name means.
func (m *machine) findTool(name string) (tool, bool) {
	all := m.listedTools()
	i := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{}, false
	}
	return all[i], true
}
