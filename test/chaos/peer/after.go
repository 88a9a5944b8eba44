package peer

import "time"

// After returns how long the performer waits before it does an action, counted from the call that returned the action. Hold and
// Note are done at once.
func After(a Action) time.Duration {
	switch a := a.(type) {
	case Send:
		return a.After
	case Raw:
		return a.After
	case Status:
		return a.After
	case Accept:
		return a.After
	case Reject:
		return a.After
	case Exit:
		return a.After
	case Stop:
		return a.After
	case PauseReading:
		return a.After
	case Spawn:
		return a.After
	case Cut:
		return a.After
	case BlockStart:
		return a.After
	case Wait:
		return a.After
	}
	return 0
}
