package faults

// processFaults are the faults of starts, ends and signals. Those that also apply to servers over a network strike the
// connection there.
var processFaults = []Kind{
	{
		Name: "crash", ID: "P12", Also: []string{"P1", "H11"}, Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Instant: true, EndsConnections: true,
		Description: "every connection of the server ends at once, as if it had died; it can be opened again",
		Params: []Param{
			{"code", "1", Count, "exit code of the process", nil},
			{"signal", "", Choice, "signal that it dies of instead", []string{"", "KILL", "SEGV", "ABRT", "TERM"}},
			{"midcall", "false", Bool, "only connections on which a call is under way", nil},
			{"down", "0s", Duration, "for how long afterwards nothing can be opened; until all faults have ended at most", nil},
		},
	},
	{
		Name: "crash-loop", ID: "P12", Also: []string{"L6", "H12"}, Kinds: allKinds, Eras: bothEras, Tiers: tiers, EndsConnections: true,
		Description: "every connection ends a while after it was opened, those that stand at once",
		Params: []Param{
			{"after", "0s", Duration, "from the opening to the end", nil},
			{"code", "1", Count, "exit code of the process", nil},
		},
	},
	{
		Name: "exit-after-list", ID: "P12", Kinds: allKinds, Eras: bothEras, Tiers: tiers, EndsConnections: true,
		Description: "the server ends when it has sent the last page of its tool list",
		Params: []Param{
			{"after", "0s", Duration, "from the page to the end", nil},
			{"code", "0", Count, "exit code of the process", nil},
		},
	},
	{
		Name: "hang-start", ID: "P4", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server starts and answers nothing of the handshake while this lasts",
	},
	{
		Name: "stuck-dial", ID: "P4", Kinds: dialedKinds, Eras: bothEras, Tiers: simOnly,
		Description: "a dial does not return while this lasts, not even when nobody waits for it any more, and succeeds then",
	},
	{
		Name: "slow-start", ID: "P13", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "a server that is started while this lasts takes longer until it answers",
		Params:      []Param{{"by", "10s", Duration, "how much longer, ± a half", nil}},
	},
	{
		Name: "starved", ID: "P13", Kinds: processKinds, Eras: bothEras, Tiers: simOnly,
		Description: "a process that is started while this lasts takes longer until it answers, because it waits for a processor",
		Params: []Param{
			{"by", "5s", Duration, "how much longer, ± a half", nil},
			{"waits", "0.9", Chance, "the share of its time in which it waits; in the rest it runs", nil},
		},
	},
	{
		Name: "silent-discover", ID: "P5", Kinds: bothEraKinds, Eras: legacyEras, Tiers: tiers,
		Description: "the question server/discover, which the server does not know, is never answered; who knows the era does not ask it",
	},
	{
		Name: "die-on-discover", ID: "P5", Kinds: bothEraKinds, Eras: legacyEras, Tiers: tiers, EndsConnections: true,
		Description: "the server ends when it is asked server/discover, which it does not know; who knows the era does not ask it",
		Params:      []Param{{"code", "1", Count, "exit code of the process", nil}},
	},
	{
		Name: "ignore-eof", ID: "P3", Kinds: processKinds, Eras: bothEras, Tiers: tiers,
		Description: "the process goes on when its input has ended, and ends on SIGTERM",
	},
	{
		Name: "ignore-term", ID: "P3", Kinds: processKinds, Eras: bothEras, Tiers: tiers,
		Description: "the process goes on when its input has ended, and on SIGTERM too",
	},
	{
		Name: "grandchild", ID: "P2", Also: []string{"P1"}, Kinds: processKinds, Eras: bothEras, Tiers: realOnly,
		Description: "the process starts a child of its own that holds its output and outlives it",
		Params: []Param{
			{"for", "1h", Duration, "how long the child lives", nil},
			{"own-session", "false", Bool, "the child leaves the process group", nil},
		},
	},
	{
		Name: "missing-binary", ID: "P14", Kinds: processKinds, Eras: bothEras, Tiers: tiers,
		Description: "the program cannot be started while this lasts",
		Params: []Param{
			{"what", "missing", Choice, "the file is not there, or may not be run", []string{"missing", "config"}},
		},
	},
	{
		Name: "exhausted", ID: "P15", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the machine has no descriptors left for a new connection; those that stand go on",
	},
	{
		Name: "stop", ID: "L5", Also: []string{"H4"}, Kinds: outOfProcess, Eras: bothEras, Tiers: tiers,
		Description: "the process is stopped (SIGSTOP) and goes on at the end, with everything that it had not read",
	},
	{
		Name: "deaf", ID: "L5", Also: []string{"H11"}, Kinds: outOfProcess, Eras: bothEras, Tiers: tiers,
		Description: "the server stops reading and goes on writing; at the end it reads on",
	},
}
