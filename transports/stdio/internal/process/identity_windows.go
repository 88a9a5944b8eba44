package process

import "time"

// EndGroups does nothing: job objects end with this process.
func EndGroups(map[int]Identity, time.Duration) {}

// Identify knows nothing, because no group is ended by its number here.
func Identify(int) Identity { return Identity{} }
