package process

// Identity tells a process group from another one that was given the same number later. A zero field is not known.
type Identity struct {
	Start   uint64 // when the first process was started, in the system's own unit
	Session int    // the session of the group, by which its members are known when the first process is gone
}

// Group ends a whole tree of processes, by the means of the platform. Its methods fail silently, because a process that
// cannot be signalled is gone, or another user's.
type Group interface {
	// Terminate asks the processes to end, Kill ends them. HasMembers reports whether any process is left, hasLivingMembers
	// whether any but zombies is, which costs far more to know. Both may only be called after the child was reaped.
	Terminate()
	Kill()
	HasMembers() bool
	hasLivingMembers() bool
	// close releases what the platform holds for the group.
	close()
}
