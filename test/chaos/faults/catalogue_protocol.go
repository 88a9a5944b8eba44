package faults

// protocol are the faults of versions and eras.
var protocol = []Kind{
	{
		Name: "modern-breach", ID: "R15", Kinds: dual, Eras: modern, Tiers: tiers,
		Does: "the server breaks a rule of the modern era",
		Params: []Param{
			{"what", "result-type", Word, "results without resultType, notifications under another subscription's id, a notification " +
				"before the agreement, subscriptions that are ended without a response",
				[]string{"result-type", "subscription-id", "early-notification", "listen-closed"}},
			{"every", "10s", Duration, "how often a notification comes, or a subscription is ended", nil},
		},
	},
	{
		Name: "era-flip", ID: "R16", Kinds: dual, Eras: both, Tiers: tiers, Ends: true,
		Does: "the server is started again and speaks the other era, and its own again at the end",
	},
	{
		Name: "wrong-version", ID: "R16", Kinds: everywhere, Eras: both, Tiers: tiers,
		Does:   "the server speaks only a version of the protocol that nobody else speaks",
		Params: []Param{{"version", "1999-01-01", Text, "that version", nil}},
	},
}
