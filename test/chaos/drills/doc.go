// Package drills runs short exercises with managers of their own, in which each right answer is known beforehand: the servers follow a script,
// and nothing breaks that the script does not break. Package sim ends each random day with some of them (manager: drills), in virtual time.
//
//	drills.Play(drills.Options{Seed: seed, Count: 4, Report: func(f drills.Finding) { … }})
//
// The days of the simulation are full of faults, so their judges must let pass what a fault may explain: which of several bounds refused a
// call, of how many callers a person heard, how long a caller was asked to wait. A drill has no fault to explain anything, and judges to
// the nanosecond. What it draws is the situation: how many callers, in which order, which answers, which options.
//
// # Guarantees
//
// A seed draws the same drills, with the same situations. A drill reports nothing if the manager and the gateway do what they should, in whichever
// order the goroutines run.
//
// # Not promised
//
// The same findings in each run of a seed: where a defect depends on the order of goroutines, so does its finding.
//
// # How it fits
//
// Package sim plays the drills in a bubble of their own after the day, and records each finding as a violation. The servers are functions
// for Config.InProcess; the agents come to the gateway on lines in memory.
package drills
