package messages

import (
	"errors"
	"time"
)

// retryPause is the least time before a call is made again. An attempt to connect that is under way, and a full queue, have no time
// of their own, and a caller without a pause would spend a processor on asking.
const retryPause = 100 * time.Millisecond

// MayRetry tells a caller whether to make the same call again. ok is true if the tool did not run, so that it cannot run twice, and if
// the reason passes by itself: the manager will connect the server again, a queue gets room, the server has less to do. at is the
// time for the call: that of the manager's next attempt to connect, or the one that the server asked for, and at least 0.1 s
// from now. ok is false for a call that may have run, and for one that fails until a person or the program changes something: an
// unknown name, a denied, invalid or cancelled call, a server that is disabled, needs credentials or is not tried again, a closed
// manager. For a nil *Error it is false, so that a call that succeeded needs no question of its own:
//
//	for {
//		out, err := m.CallTool(ctx, name, args)
//		e, _ := errors.AsType[*supervisor.Error](err)
//		at, retry := e.MayRetry()
//		if !retry || ctx.Err() != nil {
//			return out, err
//		}
//		select {
//		case <-time.After(time.Until(at)):
//		case <-ctx.Done(): // the next call ends at once, and says so
//		}
//	}
func (e *Error) MayRetry() (at time.Time, ok bool) {
	if e == nil || !e.mayPass() {
		return time.Time{}, false
	}
	return time.Now().Add(max(e.RetryAfter, retryPause)), true
}

// mayPass decides MayRetry without a clock.
func (e *Error) mayPass() bool {
	// Nothing ran: it was not sent, or the server refused it because it has too much to do (429, 503).
	notRun := e.Outcome == OutcomeNotSent || e.Outcome == OutcomeRejected && e.Class == ClassThrottled
	if !notRun || errors.Is(e, ErrClosed) {
		return false
	}
	if e.Retry != "" {
		return e.Retry != RetryNever && e.Class != ClassCanceled
	}
	switch e.Class {
	case ClassTimeout, ClassExited, ClassNetwork, ClassThrottled, ClassSession, ClassExhausted, ClassProtocol:
		return true
	case ClassNone, ClassConfig, ClassMissing, ClassUnauthorized, ClassForbidden, ClassUnsupported, ClassCanceled, ClassDenied,
		ClassInvalid, ClassRejected, ClassPanic:
	}
	return false
}
