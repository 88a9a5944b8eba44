package session

import "time"

// monotime is a time on the monotonic clock, 0 for never: a third of a time.Time, and less work to ask for.
type monotime time.Duration

// clockStart is what moments count from. In a testing/synctest bubble they count from the same, by the bubble's clock.
var clockStart = time.Now()

func monotimeNow() monotime { return monotime(time.Since(clockStart)) }

// timeLeft is how long it is until then, and nothing if it is over.
func (m monotime) timeLeft() time.Duration { return time.Duration(max(m-monotimeNow(), 0)) }
