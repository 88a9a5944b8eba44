package session

import "time"

// monotime is a point in time on the monotonic clock, counted from clockStart; 0 means never. It takes a third of the memory
// of a time.Time and less time to read, and every pending request holds one or two.
type monotime time.Duration

// clockStart is the zero of monotime, a century before the program began. So 0 is earlier than every point in time in a
// testing/synctest bubble, too, whose clock begins in the year 2000; were points there negative, a comparison with the 0 of
// never would come out otherwise in a test than in the field.
var clockStart = time.Now().Add(-100 * 365 * 24 * time.Hour)

// monotimeNow returns the present time.
func monotimeNow() monotime { return monotime(time.Since(clockStart)) }

// onCalendar returns m as a time.Time with its reading of the monotonic clock, so that no adjustment of the clock moves it.
func (m monotime) onCalendar() time.Time { return clockStart.Add(time.Duration(m)) }

// timeLeft returns the time from now until m, 0 if m has passed.
func (m monotime) timeLeft() time.Duration { return time.Duration(max(m-monotimeNow(), 0)) }
