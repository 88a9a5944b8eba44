package scale

import "github.com/mcpvisor/mcpvisor/test/bench/row"

// Sections returns the sections of this package.
func Sections() []row.Section {
	return []row.Section{Memory(), Start(), Status(), ChurnSection(), Ends()}
}
