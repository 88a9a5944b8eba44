// Package monotime has points in time on the monotonic clock that take 8 bytes, for what a session keeps for each request.
//
//	due := monotime.Now() + monotime.Time(timeout)
//	left := due.TimeLeft()
//
// The session and package calltimeout keep one or two for each pending request; a time.Time would take three times the room. The
// package has no state but the zero of its clock, which a test in a testing/synctest bubble shares.
//
// Not promised: a meaning outside of this process. A [Time] is never stored nor sent.
package monotime

import "time"

// Time is a point in time on the monotonic clock, counted from clockStart; 0 means never. It takes a third of the memory
// of a time.Time and less time to read, and every pending request holds one or two.
type Time time.Duration

// clockStart is the zero of Time, a century before the program began. So 0 is earlier than every point in time in a
// testing/synctest bubble, too, whose clock begins in the year 2000; were points there negative, a comparison with the 0 of
// never would come out otherwise in a test than in the field.
var clockStart = time.Now().Add(-100 * 365 * 24 * time.Hour)

// Now returns the present time.
func Now() Time { return Time(time.Since(clockStart)) }

// OnCalendar returns m as a time.Time with its reading of the monotonic clock, so that no adjustment of the clock moves it.
func (m Time) OnCalendar() time.Time { return clockStart.Add(time.Duration(m)) }

// TimeLeft returns the time from now until m, 0 if m has passed.
func (m Time) TimeLeft() time.Duration { return time.Duration(max(m-Now(), 0)) }
