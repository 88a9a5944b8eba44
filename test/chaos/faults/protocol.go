package faults

// protocolFaults are the faults of versions and eras.
var protocolFaults = []Kind{
	{
		Name: "modern-breach", ID: "R15", Kinds: bothEraKinds, Eras: modernEras, Tiers: tiers,
		Description: "the server breaks a rule of the modern era",
		Params: []Param{
			{"what", "result-type", Choice, "results without resultType, notifications under another subscription's id, a notification " +
				"before the agreement, subscriptions that are ended without a response",
				[]string{"result-type", "subscription-id", "early-notification", "listen-closed"}},
			{"every", "10s", Duration, "how often a notification comes, or a subscription is ended", nil},
		},
	},
	{
		Name: "era-flip", ID: "R16", Kinds: bothEraKinds, Eras: bothEras, Tiers: tiers, EndsConnections: true,
		Description: "the server is started again and speaks the other era, and its own again at the end",
	},
	{
		Name: "wrong-version", ID: "R16", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server speaks only a version of the protocol that nobody else speaks",
		Params:      []Param{{"version", "1999-01-01", Text, "that version", nil}},
	},
}
