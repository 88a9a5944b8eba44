package faults

// whenParam is the parameter that says at which messages a server refuses; word is its default.
func whenParam(word string) Param {
	return Param{"when", word, Choice, "at which messages: those of the handshake, calls, or all", []string{"all", "handshake", "call"}}
}

// httpFaults are the faults of HTTP: statuses, sessions and credentials.
var httpFaults = []Kind{
	{
		Name: "lose-session", ID: "H1", Kinds: httpKinds, Eras: legacyEras, Tiers: tiers, Instant: true, EndsConnections: true,
		Description: "the server forgets its sessions: it answers 404 to whoever comes with one",
	},
	{
		Name: "stale-session-400", ID: "H1", Kinds: httpKinds, Eras: legacyEras, Tiers: tiers, EndsConnections: true,
		Description: "the server forgets its sessions, and answers 400 where it should answer 404",
	},
	{
		Name: "cut-stream", ID: "H3", Kinds: networkKinds, Eras: bothEras, Tiers: tiers,
		Description: "the streams that carry what the server says are cut again and again, as gateways do with idle ones",
		Params:      []Param{{"every", "60s", Duration, "how old a stream becomes", nil}},
	},
	{
		Name: "throttle", ID: "H6", Kinds: networkKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server asks to wait",
		Params: []Param{
			{"after", "5s", Duration, "its Retry-After, in whole seconds; 0 for none", nil},
			{"status", "429", Choice, "its status", []string{"429", "503"}},
			whenParam("handshake"),
		},
	},
	{
		Name: "unauthorized", ID: "H7", Kinds: networkKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server answers 401, whatever it is shown",
		Params: []Param{
			{"scope", "tools", Text, "scope in the challenge", nil},
			whenParam("all"),
		},
	},
	{
		Name: "rotate-token", ID: "H7", Kinds: postKinds, Eras: bothEras, Tiers: tiers, Instant: true,
		Description: "the credentials that the server has accepted until now are refused with 401 from now on",
	},
	{
		Name: "forbidden", ID: "H8", Kinds: postKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server answers 403 insufficient_scope",
		Params: []Param{
			{"scope", "tools:write", Text, "scope in the challenge", nil},
			whenParam("call"),
		},
	},
	{
		Name: "redirect", ID: "H9", Kinds: postKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server sends clients elsewhere",
		Params: []Param{
			{"to", "http://127.0.0.1:9/elsewhere", Text, "where to", nil},
			{"status", "307", Choice, "its status", []string{"301", "302", "303", "307", "308"}},
			whenParam("all"),
		},
	},
	{
		Name: "silent-delete", ID: "H10", Kinds: httpKinds, Eras: legacyEras, Tiers: tiers,
		Description: "the end of a session (DELETE) is never answered",
	},
	{
		Name: "server-error", ID: "H11", Kinds: networkKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server answers with an error of its own",
		Params: []Param{
			{"status", "500", Choice, "its status", []string{
				"400", "404", "405", "406", "408", "409", "413", "415", "500", "501", "502", "503", "504",
			}},
			whenParam("all"),
			{"chance", "1", Chance, "of each message", nil},
		},
	},
	{
		Name: "wrong-content-type", ID: "H11", Kinds: httpKinds, Eras: bothEras, Tiers: tiers,
		Description: "answers are declared as something else than they are",
		Params: []Param{
			{"type", "text/html", Text, "the content type", nil},
			whenParam("all"),
			{"chance", "1", Chance, "of each answer", nil},
		},
	},
}

// networkFaults are the faults between client and server.
var networkFaults = []Kind{
	{
		Name: "half-open", ID: "H4", Also: []string{"L5"}, Kinds: networkKinds, Eras: bothEras, Tiers: tiers, EndsConnections: true,
		Description: "the connections that stand say and hear nothing any more, without an end; at the end of the fault they are reset",
	},
	{
		Name: "refuse", ID: "H11", Kinds: networkKinds, Eras: bothEras, Tiers: tiers,
		Description: "connections are refused",
		Params: []Param{
			{"standing", "true", Bool, "those that stand are reset at the begin", nil},
		},
	},
	{
		Name: "reset", ID: "H11", Kinds: networkKinds, Eras: bothEras, Tiers: tiers, Instant: true, EndsConnections: true,
		Description: "every connection is reset",
	},
	{
		Name: "black-hole", ID: "H11", Kinds: networkKinds, Eras: bothEras, Tiers: tiers,
		Description: "whatever arrives vanishes: dials hang, requests are never answered",
	},
	{
		Name: "partition", ID: "H11", Also: []string{"H4"}, Kinds: networkKinds, Eras: bothEras, Tiers: tiers,
		Description: "nothing gets from the machine to the server or back; what waited arrives at the end",
	},
}

// machineFaults are the faults of the machine on which the manager runs.
var machineFaults = []Kind{
	{
		Name: "sleep", ID: "H5", Kinds: allKinds, Eras: bothEras, Tiers: tiers, WholeMachine: true,
		Description: "the machine sleeps: its processes stop, and the network is away; afterwards everything goes on",
		Params: []Param{
			{"cut", "true", Bool, "connections over the network are dead when it wakes", nil},
		},
	},
}
