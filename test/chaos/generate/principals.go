package generate

import "github.com/mcpvisor/mcpvisor/test/chaos/scenario"

// principalsShare is the share of days with a second manager, whose servers have an instance for each caller.
const principalsShare = 0.25

// drawPrincipals has some days use servers with instances. It has a source of chance of its own.
func (d *scenarioBuilder) drawPrincipals(seed uint64) {
	if len(d.o.Only) == 0 {
		d.s.Manager.Principals = scenario.Rand(seed, "generate principals").Float64() < principalsShare
	}
}
