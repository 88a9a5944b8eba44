package generate

import "github.com/mcpvisor/mcpvisor/test/chaos/scenario"

// configuredShare is the share of days whose servers are those of a configuration.
const configuredShare = 0.2

// drawConfigured has some days use servers that are configured, and change by reloads. It has a source of chance of its own.
func (d *scenarioBuilder) drawConfigured(seed uint64) {
	if len(d.o.Only) == 0 && !d.s.Manager.Messages {
		d.s.Manager.Configured = scenario.Rand(seed, "generate configured").Float64() < configuredShare
	}
}
