// Package bugs is the table of defects that package planted plants: for each the place in the product, what stands there and what
// replaces it, the invariants that explain it, and what a user would suffer.
//
//	for _, b := range bugs.All {
//		fmt.Println(b.Package, b.In, b.Why)
//	}
//
// The table holds slips that engineers make, whether the harness finds them or not. [Unseen] names those that neither random
// days nor unit tests find, with the reason.
//
// # How it fits
//
// Package planted places the rows in the source and runs the searches, command run selects rows by name. This package imports
// nothing and reads no source: whether a row still fits the product is tested by package planted. The rows of one part of
// the product stand in the file of its name; slips.go holds those that were written without a look at the tests.
package bugs

import "slices"

// A Bug is a defect that an engineer might write.
type Bug struct {
	// Name is a few words with hyphens. It is unique, because it chooses the bug at run time.
	Name string
	// Package is the folder of the package, relative to the module. In is the function, as type.method whatever the receiver,
	// that contains the code.
	Package, In string
	// Old stands in that function exactly once and is replaced by New: an expression, adjacent statements, clauses of a switch,
	// or a field of a literal. New may be empty for all but an expression.
	Old, New string
	// Finds holds the invariants that explain the defect, the best first. Another one may find it earlier, and then the bug
	// counts as found but not as explained.
	Finds []string
	// Why says what a user would suffer. It helps to find the bug's new place when the code has moved.
	Why string
}

// All holds all bugs, in the order of the table.
var All = slices.Concat(lifecycleBugs, callBugs, serverBugs, catalogBugs, queueBugs, policyBugs, gateBugs, supervisorBugs, serversBugs, facadeBugs,
	sessionBugs, messageBugs, hangBugs, slipBugs, laterSlipBugs, thirdSlipBugs, fourthSlipBugs, fifthSlipBugs, entryBugs, offerBugs, readBugs, programBugs, instanceBugs, gatewayBugs, agentTaskBugs, comparedBugs, wrongRequestBugs, agentBoundBugs,
	webBugs, taskInputBugs, drillBugs)

// ExplainedBy reports whether one of the violated invariants explains the bug.
func (b Bug) ExplainedBy(violated []string) bool {
	return slices.ContainsFunc(b.Finds, func(want string) bool { return slices.Contains(violated, want) })
}

// sessionParts is the folder of the parts of a session.
const sessionParts = "transports/session/internal/"

// inPackage sets the package of each bug that names none, so that a row needs not repeat it.
func inPackage(folder string, bugs ...Bug) []Bug {
	for i := range bugs {
		if bugs[i].Package == "" {
			bugs[i].Package = folder
		}
	}
	return bugs
}
