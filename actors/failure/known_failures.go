package failure

// knownFailures are the tables of known failures, in the order in which they are asked: rows that name their subject come before
// rows that could be about anything. The texts are those of the versions that testdata names.
var knownFailures = [...]struct {
	rows []knownFailure
	// near rows could be about a passing problem that a program reported before it ended for another reason, so they apply only
	// to lines next to the reason.
	near bool
}{
	{npm, false}, {node, false}, {python, false}, {otherLanguages, false}, {containers, false}, {system, true}, {programs, true},
}

// nearby is the number of lines before and after the reason that count as next to it.
const nearby = 3
