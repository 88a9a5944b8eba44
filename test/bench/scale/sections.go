package scale

import "github.com/mcpvisor/mcpvisor/test/bench/row"

// Sections are everything that is measured here.
func Sections() []row.Section {
	return []row.Section{Memory(), Start(), Status(), ChurnSection(), Ends()}
}
