// Package campaign runs many simulations: each in a process that does nothing else, several side by side, and judged there.
//
//	pool := campaign.NewPool(command, 2)             // command starts this program as a worker
//	defer pool.Close()
//	s := campaign.Run(ctx, pool, campaign.Seeds(campaign.Task{}, 1, 200), func(r campaign.Result) { … })
//
// # How it fits
//
// The command "mcpvisor chaos sim", the nightly runs and package planted call [Run]. A worker is any program that calls [Serve]
// with its standard input and output: it gets tasks and returns results, one line of JSON each. [Do] makes a run in the worker,
// with packages generate (the scenario of a seed), sim (the run) and invariant (the verdicts). The parent process only counts
// results, so that it never runs the code that it judges.
//
//	Run -> Pool -> worker process: Serve -> Do -> generate, sim, invariant
//	 ^                                  |
//	 +------------- Result -------------+
//
// # Guarantees
//
// Each task has one result. If a worker dies (a panic in a goroutine of the manager ends its process) or does not return, the
// result has a violation with the end of its standard error, and the next task gets a new worker. Runs in a worker are exact:
// the same task gives the same history, byte for byte.
package campaign
