package fault

// outputKinds are the faults of what a server writes beside, before and instead of answers. Floods need real pipes to fill, so
// that the simulation does not have them.
func outputKinds() []Kind {
	const (
		lines = "there are no lines over HTTP"
		bytes = "inside of a program messages have no bytes that take time"
	)
	return []Kind{
		{
			Name: "noise", Reports: []string{"P6"}, Where: Program | Stdio | scenarios, Servers: processServers, Eras: bothEras,
			Does: "the process writes lines that are no messages to its standard output",
			Why:  lines,
			Params: []Param{
				rateParam("rate", "10", "lines per second"),
				wordParam("when", "always", "before or after the handshake is done, or always", "always", "before", "during"),
				textParam("line", "Server listening, ready to accept connections", "the line").only(rules),
			},
		},
		{
			Name: "stderr-flood", Reports: []string{"P7"}, Where: Stdio | Real, Servers: processServers, Eras: bothEras,
			Does:   "the process writes very much to its standard error",
			Why:    "only a process has a standard error",
			Params: floodParams("4MiB", "1s"),
		},
		{
			// 17 MiB is beyond the limit of mcpvisor, and of most clients. A length beyond it costs only time.
			Name: "huge-line", Reports: []string{"P8"}, Where: everywhere, Servers: outOfProcess, Eras: bothEras, On: callMethods,
			Does:   "the answer of a call is longer than anybody accepts",
			Params: []Param{sizeParam("size", "17MiB", "length of the answer"), perCall()},
		},
		{
			Name: "endless-line", Reports: []string{"P8"}, Where: Stdio | Real, Servers: processServers, Eras: bothEras, EndsConnections: true,
			Does:   "the process writes one line that does not end while this lasts",
			Why:    lines,
			Params: floodParams("1MiB", "50ms"),
		},
		{
			Name: "half-line", Reports: []string{"P8", "P6"}, Where: Program | Stdio | scenarios, Servers: processServers, Eras: bothEras, On: callMethods,
			Does: "half of an answer is written",
			Why:  lines + "; cut does it there",
			Params: []Param{
				wordParam("then", "stall", "what follows it: nothing until the end of the fault, the rest of another message in the same line, "+
					"or the process ends", "stall", "next", "exit"),
				codeParam("1").only(rules), signalParam().only(rules), perCall(),
			},
		},
		{
			Name: "duplicate-response", Reports: []string{"P11"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: callMethods,
			Does:   "a call is answered twice",
			Params: []Param{perCall()},
		},
		{
			Name: "unknown-response", Reports: []string{"P11"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: callMethods,
			Does:   "before a call is answered, a response comes to a request that nobody has made",
			Params: []Param{perCall()},
		},
		{
			Name: "late-response", Reports: []string{"P11"}, Where: everywhere, Servers: cancellingServers, Eras: bothEras, On: callMethods,
			Does:   "a call is answered only after the client has cancelled it",
			Params: []Param{durationParam("by", "50ms", "how long after the cancellation"), perCall()},
		},
		{
			Name: "slow-drip", Reports: []string{"H11"}, Where: Stdio | HTTP | scenarios, Servers: outOfProcess, Eras: bothEras,
			Does: "answers come in small pieces",
			Why:  bytes,
			Params: []Param{
				sizeParam("chunk", "16", "bytes at a time"),
				durationParam("every", "20ms", "time between them"),
			},
		},
		{
			Name: "slow", Reports: []string{"H11"}, Where: Stdio | HTTP,
			Does:   "few bytes a second come through",
			Why:    bytes,
			Params: []Param{sizeParam("rate", "16KiB", "bytes per second")},
		},
		{
			Name: "truncate", Reports: []string{"H11"}, Where: HTTP | scenarios, Servers: postServers, Eras: bothEras, On: callMethods,
			Does:   "the answer of a call breaks off in its middle, and what carries it with it",
			Why:    "only a body has a length that is not kept; cut does it everywhere",
			Params: []Param{perCall()},
		},
	}
}

// floodParams say how much is written, and how often.
func floodParams(bytes, every string) []Param {
	return []Param{sizeParam("bytes", bytes, "how much each time"), durationParam("every", every, "how often")}
}
