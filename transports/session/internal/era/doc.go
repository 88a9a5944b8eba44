// Package era decides which era of the protocol a server speaks, and in which version.
//
//	q := era.Probe{KeepsSession: true}
//	switch q.NextStep() { case era.StepDiscover: … }
//
// It is pure: package session asks the questions, runs the clock and records the answers in a [Probe], whose NextStep says what
// follows. [Classify] turns the answer to server/discover into a state of the probe, [FirstCommon] chooses a version.
package era
