package faults

import "github.com/mcpvisor/mcpvisor/messages"

// outputFaults are the faults of what a server writes beside, before and instead of answers. Floods need real pipes to fill, so
// that they are realOnly.
var outputFaults = []Kind{
	{
		Name: "noise", ID: "P6", Kinds: processKinds, Eras: bothEras, Tiers: tiers,
		Description: "the process writes lines that are no messages to its standard output",
		Params: []Param{
			{"rate", "10", Rate, "lines per second", nil},
			{"when", "always", Choice, "before or after the handshake is done, or always", []string{"always", "before", "during"}},
		},
	},
	{
		Name: "stderr-flood", ID: "P7", Kinds: processKinds, Eras: bothEras, Tiers: realOnly,
		Description: "the process writes very much to its standard error",
		Params: []Param{
			{"bytes", "4MiB", Size, "how much each time", nil},
			{"every", "1s", Duration, "how often", nil},
		},
	},
	{
		Name: "huge-line", ID: "P8", Kinds: outOfProcess, Eras: bothEras, Tiers: tiers,
		Description: "the answer of a call is longer than anybody accepts",
		Params:      []Param{{"size", "17MiB", Size, "length of the answer", nil}, chanceParam},
	},
	{
		Name: "endless-line", ID: "P8", Kinds: processKinds, Eras: bothEras, Tiers: realOnly, EndsConnections: true,
		Description: "the process writes one line that never ends",
		Params: []Param{
			{"bytes", "1MiB", Size, "how much each time", nil},
			{"every", "50ms", Duration, "how often", nil},
		},
	},
	{
		Name: "half-line", ID: "P8", Also: []string{"P6"}, Kinds: processKinds, Eras: bothEras, Tiers: tiers,
		Description: "half of an answer is written",
		Params: []Param{
			{"then", "stall", Choice, "what follows it: nothing until the end of the fault, the rest of another message in the same " +
				"line, or the process ends", []string{"stall", "next", "exit"}},
			chanceParam,
		},
	},
	{
		Name: "duplicate-response", ID: "P11", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "a call is answered twice",
		Params:      []Param{chanceParam},
	},
	{
		Name: "unknown-response", ID: "P11", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "before a call is answered, a response comes to a request that nobody has made",
		Params:      []Param{chanceParam},
	},
	{
		Name: "late-response", ID: "P11", Eras: bothEras, Tiers: tiers,
		Kinds:       []messages.TransportKind{messages.Stdio, messages.SSE, messages.WebSocket, messages.SDK},
		Description: "a call is answered only after the client has cancelled it",
		Params: []Param{
			{"by", "50ms", Duration, "how long after the cancellation", nil},
			chanceParam,
		},
	},
	{
		Name: "slow-drip", ID: "H11", Kinds: outOfProcess, Eras: bothEras, Tiers: tiers,
		Description: "answers come in small pieces",
		Params: []Param{
			{"chunk", "16", Size, "bytes at a time", nil},
			{"every", "20ms", Duration, "time between them", nil},
		},
	},
	{
		Name: "truncate", ID: "H11", Kinds: postKinds, Eras: bothEras, Tiers: tiers,
		Description: "the answer of a call breaks off in its middle, and what carries it with it",
		Params:      []Param{chanceParam},
	},
}
