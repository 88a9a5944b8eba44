package fault

// processKinds are the faults of starts, ends and signals. Those that also apply to servers over a network strike the connection
// there.
func processKinds() []Kind {
	const starting = "the server has been started when a rule counts"
	return []Kind{
		{
			Name: "crash", Reports: []string{"P12", "P1", "H11"}, Where: everywhere, Servers: allServers, Eras: bothEras,
			Instant: everywhere, EndsConnections: true,
			Does:   "every connection of the server ends at once, as if it had died; it can be opened again",
			InRule: "the server ends; on a message if the rule names one, before it arrives",
			Params: []Param{
				codeParam("1"), signalParam(),
				truthParam("midcall", "false", "only while a call is under way: in a rule the first call ends the server"),
				durationParam("down", "0s", "for how long afterwards nothing can be opened; until all faults have ended at most").only(scenarios),
			},
		},
		{
			Name: "crash-loop", Reports: []string{"P12", "L6", "H12"}, Where: everywhere, Servers: allServers, Eras: bothEras, EndsConnections: true,
			Does:   "every connection ends a while after it was opened, those that stand at once",
			InRule: "every connection ends a while after it was opened, those that stand a while after the rule begins",
			Params: []Param{
				// A rule that ends a server at once would leave no time for the message that a person waits for.
				durationParam("after", "0s", "from the opening to the end").ruleDefault("1s"),
				codeParam("1"), signalParam().only(rules),
			},
		},
		{
			Name: "exit-after-list", Reports: []string{"P12"}, Where: everywhere, Servers: allServers, Eras: bothEras, EndsConnections: true,
			On:   toolListMethods,
			Does: "the server ends when it has sent the last page of its tool list",
			Params: []Param{
				durationParam("after", "0s", "from the page to the end").only(scenarios),
				codeParam("0"), signalParam().only(rules),
			},
		},
		{
			Name: "hang-start", Reports: []string{"P4"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: handshakeMethods,
			Does: "the server starts and answers nothing of the handshake while this lasts",
		},
		{
			Name: "stuck-dial", Reports: []string{"P4"}, Where: Sim, Servers: dialedServers, Eras: bothEras,
			Does: "a dial does not return while this lasts, not even when nobody waits for it any more, and succeeds then",
			Why:  "who waits for a dial that never returns waits in the program itself; mcpvisor chaos sim does it in virtual time",
		},
		{
			Name: "slow-start", Reports: []string{"P13"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: handshakeMethods,
			Does: "a server that is started while this lasts takes longer until it answers",
			Params: []Param{
				durationParam("by", "10s", "how much longer, in a scenario ± a half"),
				jitterParam("0").only(rules),
			},
		},
		{
			Name: "starved", Reports: []string{"P13"}, Where: Sim, Servers: processServers, Eras: bothEras,
			Does: "a process that is started while this lasts takes longer until it answers, because it waits for a processor",
			Why:  "only a simulated process can wait for a processor that nothing else uses; slow-start is as late",
			Params: []Param{
				durationParam("by", "5s", "how much longer, ± a half"),
				chanceParam("waits", "0.9", "the share of its time in which it waits; in the rest it runs"),
			},
		},
		{
			Name: "silent-discover", Reports: []string{"P5"}, Where: everywhere, Servers: bothEraServers, Eras: legacyEras,
			On:   []string{"server/discover"},
			Does: "the question server/discover is never answered; who knows the era does not ask it",
		},
		{
			Name: "die-on-discover", Reports: []string{"P5"}, Where: everywhere, Servers: bothEraServers, Eras: legacyEras, EndsConnections: true,
			On:     []string{"server/discover"},
			Does:   "the server ends when it is asked server/discover; who knows the era does not ask it",
			Params: []Param{codeParam("1"), signalParam().only(rules)},
		},
		{
			Name: "ignore-eof", Reports: []string{"P3"}, Where: Stdio | scenarios, Servers: processServers, Eras: bothEras,
			Does: "the process goes on when its input has ended, and ends on SIGTERM",
			Why:  "only a process has an input that ends",
		},
		{
			Name: "ignore-term", Reports: []string{"P3"}, Where: Stdio | scenarios, Servers: processServers, Eras: bothEras,
			Does:   "the process goes on when its input has ended, and on SIGTERM too",
			InRule: "the process goes on on SIGTERM",
			Why:    "only a process is sent signals",
		},
		{
			Name: "grandchild", Reports: []string{"P2", "P1"}, Where: Real, Servers: processServers, Eras: bothEras,
			Does: "the process starts a child of its own that holds its output and outlives it",
			Why:  "it would leave a process behind in a place that is not a test's; chaos run does it to servers of its own",
			Params: []Param{
				durationParam("for", "1h", "how long the child lives"),
				truthParam("own-session", "false", "the child leaves the process group"),
			},
		},
		{
			Name: "missing-binary", Reports: []string{"P14"}, Where: Program | scenarios, Servers: processServers, Eras: bothEras, On: dialMethods,
			Does:   "the program cannot be started while this lasts",
			Why:    starting + "; give a command that does not exist",
			Params: []Param{wordParam("what", "missing", "the file is not there, or may not be run", "missing", "config")},
		},
		{
			Name: "exhausted", Reports: []string{"P15"}, Where: Program | scenarios, Servers: allServers, Eras: bothEras, On: dialMethods,
			Does: "the machine has no descriptors left for a new connection; those that stand go on",
			Why:  starting,
		},
		{
			Name: "stop", Reports: []string{"L5", "H4"}, Where: Stdio | scenarios, Servers: outOfProcess, Eras: bothEras,
			Does: "the process is stopped (SIGSTOP) and goes on at the end, with everything that it had not read",
			Why:  "only the process of a server can be stopped, and here there is none of ours; black-hole is as silent",
		},
		{
			Name: "deaf", Reports: []string{"L5", "H11"}, Where: everywhere, Servers: outOfProcess, Eras: bothEras,
			Does: "the server stops reading and goes on writing; at the end it reads on",
		},
	}
}
