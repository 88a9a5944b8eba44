package transports

// processIdentity tells a process group from another one that was given the same number later. A zero field is not known.
type processIdentity struct {
	start   uint64 // when the first process was started, in the system's own unit
	session int
}

// processGroup ends a whole tree of processes, by the means of the platform. Its methods fail silently, because a process that
// cannot be signalled is gone, or another user's.
type processGroup interface {
	// terminate asks the processes to end, kill ends them. hasMembers reports whether any process is left, hasLivingMembers
	// whether any but zombies is, which costs far more to know. Both may only be called after the child was reaped.
	terminate()
	kill()
	hasMembers() bool
	hasLivingMembers() bool
	// close releases what the platform holds for the group.
	close()
}
