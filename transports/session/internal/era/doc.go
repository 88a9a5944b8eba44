// Package era decides which era of the protocol a server speaks, and in which version.
//
//	q := era.Probe{KeepsSession: true}
//	switch q.NextStep() { case era.StepDiscover: … }
//
// It is pure: package session asks the questions, runs the clock and records the answers in a [Probe], whose NextStep says what
// follows. [Classify] turns the answer to server/discover into a state of the probe, [FirstCommon] chooses a version.
//
// Guarantees: the result follows from the answers, not from their order or speed, but for the two cases that [Probe] names. A
// server of the legacy era that ignores an unknown request costs a wait of Config.ProbeWait or two, and no connect timeout.
//
// Not promised: the era of a server that was replaced by another version. The session asks again with each new connection, unless its
// owner gives it the era that an earlier one has found.
package era
