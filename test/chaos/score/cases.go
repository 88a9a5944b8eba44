package score

import "slices"

// Case is one short story.
type Case struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Story is what happens, in one or two sentences; Faults are the rows of the catalogue of faults that it is about.
	Story  string   `json:"story"`
	Faults []string `json:"faults,omitempty"`
	// Over is stdio or HTTP, and the era if that is what the case is about.
	Over string `json:"over"`

	// exclusive: it loads the machine, and nothing else is played meanwhile.
	exclusive bool
	play      func(a *caseRun)
}

// Cases are all of them, in the order of their numbers.
func Cases() []Case {
	all := slices.Concat(processCases, callCases, listCases, webCases)
	for i := range all {
		all[i].Number = i + 1
	}
	return all
}
