// Package planted measures what the harness can find. It plants one bug after the other into the product, looks for it with
// random days in virtual time and with the unit tests of the bug's package, and reports which of them found it, by which
// invariant, and how small the scenario is that shows it.
//
//	make planted            # all bugs
//	make planted ONLY=park  # those whose name contains the word
//
// A bug is anchored to a function, or another declaration, and to code within it, by the syntax tree: formatting, comments and
// the file in which the function stands do not count. The compiler gets the changes as an overlay; nothing in the source tree
// changes. A bug whose code is gone fails the package's test by name, with advice where to look.
//
// The table holds slips that engineers make, whether the harness finds them or not. [Unseen] names those that neither random
// days nor unit tests find, with the reason.
//
// # How it fits
//
//	Bugs -> Source.Compiles, Source.Build -> Programs.Search, Programs.Test -> NewTable
//	        (overlay, go build)              (child processes)                 (report)
//
// Command run (make planted) drives this package and owns the directory for the programs. Programs.Search starts command
// search, which is built with the overlay and calls packages generate, campaign and shrink; Programs.Test starts the test
// programs of the product's packages. The environment variable MCPVISOR_PLANTED chooses the bug of each process.
package planted

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

// Bugs holds all bugs, in the order of the table.
var Bugs = slices.Concat(lifecycleBugs, callBugs, serverBugs, catalogBugs, queueBugs, policyBugs, gateBugs, supervisorBugs, serversBugs,
	sessionBugs, messageBugs, hangBugs, slipBugs, entryBugs, offerBugs)

// inPackage sets the package of each bug, so that a row needs not repeat it.
func inPackage(folder string, bugs ...Bug) []Bug {
	for i := range bugs {
		bugs[i].Package = folder
	}
	return bugs
}
