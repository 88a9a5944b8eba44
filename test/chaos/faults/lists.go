package faults

// listFaults are the faults of the tool list. Those that change it announce the change, unless their description says
// otherwise.
var listFaults = []Kind{
	{
		Name: "cursor-loop", ID: "R4", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the pages of the tool list never end",
		Params: []Param{
			{"what", "same", Choice, "a cursor comes again, or each page has a new one", []string{"same", "endless"}},
		},
	},
	{
		Name: "empty-cursor", ID: "R4", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "a page of the tool list has the empty text as its next cursor, mostly the last one",
		Params: []Param{
			{"what", "page", Choice, "it leads to a page without tools, as it may, or to the first page again; or the first page has it, " +
				"and it leads to the second", []string{"page", "first", "second"}},
		},
	},
	{
		Name: "list-changed", ID: "R6", Kinds: allKinds, Eras: bothEras, Tiers: tiers, Instant: true,
		Description: "the tool list changes, and the server says so",
		Params: []Param{
			{"what", "swap", Choice, "a tool takes the place of the last one that came so, or one comes, the last one goes, is described anew, or says something else in its _meta",
				[]string{"swap", "add", "remove", "describe", "meta"}},
			{"times", "1", Count, "how many changes at once, each announced", nil},
		},
	},
	{
		Name: "list-storm", ID: "R6", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the server says again and again that its tool list has changed",
		Params: []Param{
			{"rate", "100", Rate, "times per second", nil},
			{"change", "false", Bool, "it really changes each time", nil},
		},
	},
	{
		Name: "change-during-list", ID: "R7", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the tool list changes, and the server says so, while it is being listed",
		Params:      []Param{{"times", "3", Count, "how often on one connection, 0 for each list", nil}},
	},
	{
		Name: "quiet-change", ID: "R7", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the tool list changes and the server says nothing of it until the end of the fault",
	},
	{
		Name: "duplicate-names", ID: "R8", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "tools stand in the list a second time, defined otherwise",
		Params: []Param{
			{"count", "1", Count, "how many", nil},
			{"what", "same", Choice, "with the very same name, or with two that are equal when no sign is left in them that a model's " +
				"provider refuses", []string{"same", "alike"}},
		},
	},
	{
		Name: "long-names", ID: "R9", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "there are tools with names that are too long for a model's provider",
		Params: []Param{
			{"count", "2", Count, "how many", nil},
			{"length", "100", Count, "length of the names, 20 to 1,000; beyond 128 the tool cannot be used", nil},
		},
	},
	{
		Name: "bad-schema", ID: "R10", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "there are tools whose definition is broken",
		Params: []Param{
			{"count", "1", Count, "how many", nil},
			{"what", "type", Choice, "what is wrong with it",
				[]string{"type", "array", "properties", "required", "text", "name", "huge"}},
		},
	},
}
