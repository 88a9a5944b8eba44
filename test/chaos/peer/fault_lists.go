package peer

import "fmt"

// listChanged changes the list and says so.
var listChanged = hooks{
	begin: func(m *machine, f *fault) {
		for range f.with.Int("times") {
			f.fired(m, 0)
			m.change(f.with.Text("what"))
			m.tellChanged()
		}
	},
}

// change makes another list of the true one, of about the same length: what comes is called after the change that
// brought it.
func (m *machine) change(what string) {
	l := &m.list
	l.changes++
	fresh := define(fmt.Sprintf("changed-%d", l.changes), "Came with a change.", "")
	last := len(l.tools) - 1
	switch extra := last >= m.cfg.Server.Tools; {
	case what == "add", what == "swap" && !extra:
		l.tools = append(l.tools[:last+1:last+1], fresh)
	case what == "remove" && last > 0:
		l.tools = l.tools[:last:last]
	case what == "swap":
		l.tools = append(l.tools[:last:last], fresh)
	default:
		t := define(l.tools[last].name, fmt.Sprintf("Was described anew, for the %d. time.", l.changes), "")
		l.tools = append(l.tools[:last:last], t)
	}
	m.changed()
}
