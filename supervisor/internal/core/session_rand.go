package core

import (
	"math"
	"math/rand/v2"
	"sync"

	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
)

// checkedRand draws from the program's source, and from the runtime's generator where that one panics, does not return or leaves [0,1): a
// delay that is computed from such a number could be none at all, and a server would be tried again without an end. One goroutine may call
// the result.
func checkedRand(source func() float64) func() float64 {
	var turn hooks.Turn
	return func() float64 {
		if x, ok := hooks.Get(&turn, source); ok && x >= 0 && x < 1 { // NaN is neither
			return x
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
