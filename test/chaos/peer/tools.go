package peer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// tool is one entry of the list as the server sends it. hint is the member of its annotations that is true, empty for none.
// broken marks a tool that no client can use; it is no part of the true list. from is the fault that added it, nil for the
// server's own.
type tool struct {
	name, hint, definition string
	// taskSupport is the value of execution.taskSupport, empty if the tool says nothing of tasks.
	taskSupport string
	broken      bool
	from        *fault
}

const (
	toolInput = `{"type":"object","properties":{"call":{"type":"string"},"size":{"type":"integer","minimum":0}}}`
	// toolOutput is the schema of the structured result.
	toolOutput = `{"type":"object","properties":{"value":{"type":"integer"}},"required":["value"]}`
)

// newTool makes a tool whose definition a client accepts.
func newTool(name, description, hint string) tool {
	d := `{"name":` + quoteJSON(name) + `,"description":` + quoteJSON(description) + `,"inputSchema":` + toolInput +
		`,"outputSchema":` + toolOutput
	if hint != "" {
		d += `,"annotations":{` + quoteJSON(hint) + `:true}`
	}
	return tool{name: name, hint: hint, definition: d + "}"}
}

// withDescription returns the same tool with another description.
func (t tool) withDescription(as string) tool {
	return newTool(t.name, as, t.hint).withTaskSupport(t.taskSupport)
}

// withMeta returns the same tool with a number in its _meta, of a fixed length: nothing else tells two such definitions apart.
func (t tool) withMeta(number int) tool {
	before, _, changed := strings.Cut(t.definition, toolMeta)
	if !changed {
		before = strings.TrimSuffix(before, "}")
	}
	t.definition = before + fmt.Sprintf(`%s%06d"}}`, toolMeta, number)
	return t
}

// toolMeta begins the _meta that withMeta writes at the end of a definition.
const toolMeta = `,"_meta":{"dev.mcpvisor/change":"`

// withTaskSupport returns the same tool whose calls can, or must, run as tasks (2025-11-25, Tool-Level Negotiation).
func (t tool) withTaskSupport(support string) tool {
	if t.taskSupport = support; support != "" {
		t.definition = t.definition[:len(t.definition)-1] + `,"execution":{"taskSupport":` + quoteJSON(support) + `}}`
	}
	return t
}

// toolList is the server's true tool list, without what faults add.
type toolList struct {
	tools []tool
	// rev counts the revisions from 1; announced is set once the first one is recorded.
	rev       int
	announced bool
	// changes counts changeTools and rug-pull, for the names and descriptions that they make.
	changes int
}

// fillTools makes the first list: a tool that reads, one that is idempotent, one that writes, and more of the last kind.
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
		if !scenario.ForbidsTasks(tasks, t.name) {
			l.tools[i] = t.withTaskSupport(tasks)
		}
	}
}

// announceTools records the first revision of the list, before any other event of the server.
func (m *machine) announceTools() {
	if !m.list.announced {
		m.list.announced = true
		m.recordList()
	}
}

// recordListChange counts and records a new revision of the list.
func (m *machine) recordListChange() {
	m.announceTools()
	m.list.rev++
	m.recordList()
}

// recordList records the list as a client that makes no mistake shows it: of two tools with one name only the first, and no
// broken tools.
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

// listedTools returns the list as the server sends it, with what the faults add. Clip keeps a fault's append from writing into
// the true list.
func (m *machine) listedTools() []tool {
	all := m.list.tools
	for _, f := range m.activeFaults {
		if f.hooks.editTools != nil {
			all = f.hooks.editTools(f, slices.Clip(all))
		}
	}
	return m.withHeaderParams(all)
}

// findTool returns the tool with a name, false if the list has none.
func (m *machine) findTool(name string) (tool, bool) {
	all := m.listedTools()
	i := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{}, false
	}
	return all[i], true
}
