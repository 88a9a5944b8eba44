package main

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// A spent counts what something takes from its start: the processor time of this process, because a machine that is busy with other
// things makes a day take many times longer on the clock. Where the system does not tell it, and for a process that waits and uses
// none, a tenth of the time on the clock counts.
type spent struct {
	cpu   time.Duration
	began time.Time
}

// startCounting begins to count now.
func startCounting() spent {
	cpu, _ := row.CPU() // without it only the clock counts
	return spent{cpu, time.Now()}
}

// time returns what was spent.
func (s spent) time() time.Duration {
	cpu, _ := row.CPU()
	return max(cpu-s.cpu, time.Since(s.began)/clockShare)
}

// clockShare is how many times longer a day may take on the clock than on the processor.
const clockShare = 10

// after calls f once more than most was spent, and looks each second. stop ends the looks.
func (s spent) after(most time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if s.time() > most {
					f()
					return
				}
			}
		}
	}()
	return func() { close(done) }
}
