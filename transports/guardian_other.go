//go:build unix && !linux && !darwin

package transports

// identify knows nothing here: groups are told apart by their numbers alone.
func identify(int) identity { return identity{} }

func memberSessions(int) []int { return nil }
