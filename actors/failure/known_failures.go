package failure

// knownFailures are the failures that can be told apart, in the order in which they are looked for: what names its subject stands
// before what could be anything. The words of a text are matched as they are written by the versions that testdata names.
var knownFailures = [...]struct {
	rows []knownFailure
	// near rows could be about a passing trouble that a program told of before it ended for another reason: they apply to what
	// stands next to the reason only.
	near bool
}{
	{npm, false}, {node, false}, {python, false}, {otherLanguages, false}, {containers, false}, {system, true}, {programs, true},
}

// nearby is how many lines are next to the reason.
const nearby = 3
