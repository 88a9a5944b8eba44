// Package load plans calls and measures how long they took.
//
//	s := load.NewSchedule(plan)                 // every call of the plan, in order of time
//	for c, ok := s.Next(); ok; c, ok = s.Next() { … }
//	l := load.Measure(h)                        // latencies of a history
//	l.Group(load.Healthy, load.While).Summary() // counts, outcomes, p50 … max
//
// # Open loop
//
// The planned start of every call is drawn before anything runs: arrivals are Poisson, from the seed, the server's name
// and the stream's place in the plan. No answer moves a later call. Users behave so: there are many of them, and that
// one of them waits keeps no other from asking.
//
// # Coordinated omission
//
// A loop that sends its next call when the answer to the last one has come does not send while the server hangs: one
// hang of 10 s gives one bad measurement where users would have made hundreds. Here a call's latency is counted from its
// planned start to its end, not from the moment at which it was really written. What is late because the harness, a queue
// or a call before it was late counts in full, and nothing was left out: in an open loop that is the whole correction.
// Correcting a second time (adding the calls that would have been made) would count them twice.
//
// A recording of a closed loop has left them out. Cell.RecordClosed adds them back, as HdrHistogram does
// (RecordCorrectedValue): for a value above the expected interval it also records value − interval, value − 2×interval, …
//
// # What is counted
//
//   - A latency is recorded for every call that ended in any way but not-sent: the caller waited so long for an answer,
//     or for the truth that there is none. A call that was not sent ends at once, and would make a broken server look fast.
//     It is counted among the outcomes.
//   - A call without an end is counted as open.
//   - A server is faulty if the plan has a fault for it, or a command after which it may rightly be away; a fault of the
//     machine makes every server faulty. All others are healthy.
//   - A call belongs to the window in which its planned start lies: before the first fault begins, while things break, or
//     from the healing on. The time in which the healed world recovers is therefore in After.
//
// # Precision
//
// Two significant digits for one server, three for a group of servers, in nanoseconds from 1 µs on, at most 24 h; what is
// longer is counted as 24 h. The largest value of a cell is exact.
//
// # How it fits
//
// Packages sim and live take the calls of a [Schedule] one after the other and make them; the report and the invariant about fairness
// measure the history afterwards. The package has no clock: planned times are durations since the start of the run.
package load
