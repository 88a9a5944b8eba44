package budget

// fairShare returns how many bytes each of so many servers may always hold.
func fairShare(limit int64, servers int) int64 { return limit / 2 / int64(max(servers, 1)) }

// excessOver returns how much of held is more than the fair share.
func excessOver(held, fair int64) int64 { return max(held-fair, 0) }

// mayTake reports whether a server that holds held bytes may take n more. excess is the sum of what all servers hold beyond their
// fair shares. Within its fair share a server may always take; beyond it, its own excess must not exceed what then stays free of
// the common half.
func mayTake(limit int64, servers int, excess, held, n int64) bool {
	fair := fairShare(limit, servers)
	if n <= fair-held {
		return true
	}
	if n > limit { // such an n could overflow below
		return false
	}
	ownExcess := excessOver(held+n, fair)
	others := excess - excessOver(held, fair)
	return ownExcess <= limit/2-others-ownExcess
}
