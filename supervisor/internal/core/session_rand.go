package core

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// drawWait is how long the supervisor waits for a number of the program's source, which is long on the busiest machine.
const drawWait = time.Second

// checkedRand draws from the program's source, and from the runtime's generator where that one panics, does not return or leaves [0,1): a
// delay that is computed from such a number could be none at all, and a server would be tried again without an end. Each number is drawn
// in a goroutine of its own, because the supervisor would be held with a source that does not return, and all servers with it. One
// goroutine may call the result.
func checkedRand(source func() float64) func() float64 {
	drawn := make(chan float64, 1)
	late := false // a draw has not returned in time: what it draws at last belongs to nothing
	return func() float64 {
		if late {
			select {
			case <-drawn:
				late = false
			default:
				return rand.Float64()
			}
		}
		go func() {
			x := math.NaN()
			defer func() {
				_ = recover()
				drawn <- x // it has room
			}()
			x = source()
		}()
		timer := time.NewTimer(drawWait)
		defer timer.Stop()
		select {
		case x := <-drawn:
			if x >= 0 && x < 1 { // NaN is neither
				return x
			}
		case <-timer.C:
			late = true
		}
		return rand.Float64()
	}
}

// sessionRand returns a source of numbers for the sessions of one server, which draw from several goroutines. It is seeded by
// the program's rand, if it gave one, so that a program that repeats its draws repeats those of its sessions. Only the
// supervisor's goroutine may call sessionRand, because only it may call rand.
func (s *supervisor) sessionRand() func() float64 {
	if !s.ownRand {
		return rand.Float64
	}
	// A generator of math/rand/v2 is not safe for the several goroutines of a server's sessions.
	var mu sync.Mutex
	own := rand.New(rand.NewPCG(math.Float64bits(s.Rand()), 0)) //nolint:gosec // jitter, no secret
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return own.Float64()
	}
}
