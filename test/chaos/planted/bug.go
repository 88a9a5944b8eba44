// Package planted measures what the harness can find: it plants one bug after the other into the product, looks for it with random
// days in virtual time and with the unit tests of the package in which it is, and tells which of them found it, by which
// invariant, and how small the scenario is that shows it.
//
//	make planted            # every one of them
//	make planted ONLY=park  # those whose name contains the word
//
// A bug is anchored to a function, or another declaration, and to code within it, by the syntax tree: formatting, comments and
// the file in which the function stands do not count. What changes is given to the compiler as an overlay; nothing in the
// source tree changes. A bug whose code is not there any more fails the package's test by name, with what to look for.
//
// The table holds slips that engineers make, whether the harness finds them or not. Those that neither random days nor unit
// tests find are named in Unseen, with the reason.
package planted

import "slices"

// Bug is a defect that somebody might write.
type Bug struct {
	// Name is a few words with hyphens.
	Name string
	// Package is the folder of the package, relative to the module. In is the function, as type.method whatever the receiver, or
	// the constant, variable or type within which the code stands.
	Package, In string
	// Old stands in it exactly once and is replaced by New: an expression, statements one after the other, clauses of a switch,
	// or a field of a literal. New may be empty for all but an expression.
	Old, New string
	// Finds are the invariants that explain the defect, the best first. Another one may find it before.
	Finds []string
	// Why says what a user would suffer.
	Why string
}

// Bugs are all of them.
var Bugs = slices.Concat(lifecycleBugs, callBugs, serverBugs, catalogBugs, queueBugs, policyBugs, gateBugs, supervisorBugs, serversBugs,
	sessionBugs, messageBugs, hangBugs, slipBugs, entryBugs, offerBugs)

// inPackage sets the package of bugs.
func inPackage(folder string, bugs ...Bug) []Bug {
	for i := range bugs {
		bugs[i].Package = folder
	}
	return bugs
}
