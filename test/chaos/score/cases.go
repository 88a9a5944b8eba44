package score

import "slices"

// Case is one short story that is played to a client.
type Case struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Story tells what happens, in one or two sentences. Faults are the rows of the field reports that it is about, as in the
	// catalogue of transports/fault.
	Story  string   `json:"story"`
	Faults []string `json:"faults,omitempty"`
	// Plays are the faults of that catalogue that the servers of the case have, by their names.
	Plays []string `json:"plays,omitempty"`
	// Over is "stdio" or "HTTP", with the era if the case is about it.
	Over string `json:"over"`

	// exclusive is set if the case loads the machine so much that no other case may be played meanwhile.
	exclusive bool
	// alone is set if the case ends the client or measures it as a whole: it is not played together with another in one client.
	alone bool
	// play runs in a goroutine of its own. It may panic and may hang until the end of the adapter process.
	play func(a *caseRun)
}

// Cases returns all cases in the order of their numbers. The numbers follow the order of the tables.
func Cases() []Case {
	all := slices.Concat(processCases, callCases, listCases, webCases)
	for i := range all {
		all[i].Number = i + 1
	}
	return all
}
