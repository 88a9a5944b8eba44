package faults

// when says at which requests an HTTP server refuses.
func when(word string) Param {
	return Param{"when", word, Word, "at which messages: those of the handshake, calls, or all", []string{"all", "handshake", "call"}}
}

// sessions are the faults of HTTP.
var sessions = []Kind{
	{
		Name: "lose-session", ID: "H1", Kinds: http, Eras: legacy, Tiers: tiers, Instant: true, Ends: true,
		Does: "the server forgets its sessions: it answers 404 to whoever comes with one",
	},
	{
		Name: "stale-session-400", ID: "H1", Kinds: http, Eras: legacy, Tiers: tiers, Ends: true,
		Does: "the server forgets its sessions, and answers 400 where it should answer 404",
	},
	{
		Name: "cut-stream", ID: "H3", Kinds: remote, Eras: both, Tiers: tiers,
		Does:   "the streams that carry what the server says are cut again and again, as gateways do with idle ones",
		Params: []Param{{"every", "60s", Duration, "how old a stream becomes", nil}},
	},
	{
		Name: "throttle", ID: "H6", Kinds: remote, Eras: both, Tiers: tiers,
		Does: "the server asks to wait",
		Params: []Param{
			{"after", "5s", Duration, "its Retry-After, in whole seconds; 0 for none", nil},
			{"status", "429", Word, "its status", []string{"429", "503"}},
			when("handshake"),
		},
	},
	{
		Name: "unauthorized", ID: "H7", Kinds: remote, Eras: both, Tiers: tiers,
		Does: "the server answers 401, whatever it is shown",
		Params: []Param{
			{"scope", "tools", Text, "scope in the challenge", nil},
			when("all"),
		},
	},
	{
		Name: "rotate-token", ID: "H7", Kinds: posting, Eras: both, Tiers: tiers, Instant: true,
		Does: "the credentials that the server has accepted until now are refused with 401 from now on",
	},
	{
		Name: "forbidden", ID: "H8", Kinds: posting, Eras: both, Tiers: tiers,
		Does: "the server answers 403 insufficient_scope",
		Params: []Param{
			{"scope", "tools:write", Text, "scope in the challenge", nil},
			when("call"),
		},
	},
	{
		Name: "redirect", ID: "H9", Kinds: posting, Eras: both, Tiers: tiers,
		Does: "the server sends clients elsewhere",
		Params: []Param{
			{"to", "http://127.0.0.1:9/elsewhere", Text, "where to", nil},
			{"status", "307", Word, "its status", []string{"301", "302", "303", "307", "308"}},
			when("all"),
		},
	},
	{
		Name: "silent-delete", ID: "H10", Kinds: http, Eras: legacy, Tiers: tiers,
		Does: "the end of a session (DELETE) is never answered",
	},
	{
		Name: "server-error", ID: "H11", Kinds: remote, Eras: both, Tiers: tiers,
		Does: "the server answers with an error of its own",
		Params: []Param{
			{"status", "500", Word, "its status", []string{
				"400", "404", "405", "406", "408", "409", "413", "415", "500", "501", "502", "503", "504",
			}},
			when("all"),
			{"chance", "1", Chance, "of each message", nil},
		},
	},
	{
		Name: "wrong-content-type", ID: "H11", Kinds: http, Eras: both, Tiers: tiers,
		Does: "answers are declared as something else than they are",
		Params: []Param{
			{"type", "text/html", Text, "the content type", nil},
			when("all"),
			{"chance", "1", Chance, "of each answer", nil},
		},
	},
}

// network are the faults between the machines.
var network = []Kind{
	{
		Name: "half-open", ID: "H4", Also: []string{"L5"}, Kinds: remote, Eras: both, Tiers: tiers, Ends: true,
		Does: "the connections that stand say and hear nothing any more, without an end; at the end of the fault they are reset",
	},
	{
		Name: "refuse", ID: "H11", Kinds: remote, Eras: both, Tiers: tiers,
		Does: "connections are refused",
		Params: []Param{
			{"standing", "true", Truth, "those that stand are reset at the begin", nil},
		},
	},
	{
		Name: "reset", ID: "H11", Kinds: remote, Eras: both, Tiers: tiers, Instant: true, Ends: true,
		Does: "every connection is reset",
	},
	{
		Name: "black-hole", ID: "H11", Kinds: remote, Eras: both, Tiers: tiers,
		Does: "whatever arrives vanishes: dials hang, requests are never answered",
	},
	{
		Name: "partition", ID: "H11", Also: []string{"H4"}, Kinds: remote, Eras: both, Tiers: tiers,
		Does: "nothing gets from the machine to the server or back; what waited arrives at the end",
	},
}

// machine are the faults of the machine.
var machine = []Kind{
	{
		Name: "sleep", ID: "H5", Kinds: everywhere, Eras: both, Tiers: tiers, Machine: true,
		Does: "the machine sleeps: its processes stop, and the network is away; afterwards everything goes on",
		Params: []Param{
			{"cut", "true", Truth, "connections over the network are dead when it wakes", nil},
		},
	},
}
