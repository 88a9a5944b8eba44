// Package campaign runs many simulations: each in a process that does nothing else, several side by side, judged there.
//
//	pool := campaign.NewPool(command, 2)             // command starts this program as a worker
//	defer pool.Close()
//	s := campaign.Run(ctx, pool, campaign.Seeds(campaign.Task{}, 1, 200), func(r campaign.Result) { … })
//
// A worker is any program that calls Serve with its standard input and output. It gets tasks and gives results, one line of
// JSON each.
//
// Guaranteed: each task has one result. A worker that dies (a panic in a goroutine of the manager ends its process) or does
// not come back is a result with a violation that holds its last words, and the next task gets a new worker. A run in a
// worker is exact: the same task gives the same history, byte for byte.
//
// Less formally: the parent process never runs what it judges.
package campaign
