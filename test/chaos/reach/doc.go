// Package reach says what random days try and what they do not: how many of them use each word of the language of scenarios,
// and which statements of the packages under test none of them runs.
//
//	t := reach.Count(1, 1000)                     // no day is run for it
//	p, err := reach.Read("profile.txt")           // what `go tool covdata textfmt` writes
//	for _, row := range p.Packages() { … }
//
// Command run builds the program with counters, runs the days, and writes README.md beside this file: see make days.
//
// Guaranteed: every word that a scenario can have stands in the table, also one that no day has. Not promised: that a
// statement which was run was judged. Package planted measures that.
package reach
