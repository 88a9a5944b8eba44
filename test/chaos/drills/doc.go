// Package drills plays exact scenes with managers of their own: of each answer that the scene gets it is known beforehand what it must be,
// because its servers do what they are told and nothing breaks unasked. A day of package sim ends with some of them (manager: drills), in
// virtual time.
//
//	drills.Play(drills.Options{Seed: seed, Count: 4, Report: func(f drills.Finding) { … }})
//
// The days of the simulation are full of faults, so their judges must let pass what a fault may explain: which of several bounds refused a
// call, how many callers a person was told of, how long a caller was told to wait. A drill has no fault to explain anything, and judges to
// the nanosecond. What it draws is the situation: how many callers, in which order, which answers, which options.
//
// # Guarantees
//
// A seed draws the same scenes. A drill that gets what it should reports nothing, in whichever order the goroutines run.
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
