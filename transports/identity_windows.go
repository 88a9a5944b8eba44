package transports

import "time"

// endGroups does nothing: job objects end with this process.
func endGroups(map[int]processIdentity, time.Duration) {}

// identifyProcess knows nothing, because no group is ended by its number here.
func identifyProcess(int) processIdentity { return processIdentity{} }
