package supervisor

import (
	"runtime"

	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// SharedLimits bound several managers of one program together: how many of their servers start at once, in one order, and how much
// memory they hold. Each manager alone would take as much as the machine bears. Safe for concurrent use.
type SharedLimits struct {
	gate   *restart.SharedGate
	budget *budget.Budget
}

// NewSharedLimits returns limits for Config.SharedLimits. gate and memory mean what Config.Gate and Config.MemoryBudget do.
func NewSharedLimits(gate restart.Limits, memory int64) *SharedLimits {
	if gate == (restart.Limits{}) {
		gate = restart.DefaultLimits(runtime.GOMAXPROCS(0))
	}
	return &SharedLimits{gate: restart.NewSharedGate(gate), budget: budget.New(memory)}
}

// budgetFor returns the memory budget of a manager: one of its own without shared limits.
func (l *SharedLimits) budgetFor(c *Config) *budget.Budget {
	if l == nil {
		return budget.New(c.MemoryBudget)
	}
	return l.budget
}

// sharedGate returns the gate of all managers; nil without shared limits.
func (l *SharedLimits) sharedGate() *restart.SharedGate {
	if l == nil {
		return nil
	}
	return l.gate
}
