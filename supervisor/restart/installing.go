package restart

import (
	"slices"
	"time"
)

// Installing records that a granted process fetches the program it runs, which may take minutes: its slot is free, it is not
// displaced any more, and it is counted apart from those that have not answered, so that installations delay no other server.
// It does nothing for other kinds than processes, and for a server that was not granted, has answered or is installing.
//
// As many are counted apart as there may be silent ones; those beyond are counted with the silent ones, and not displaced.
func (g *Gate) Installing(now time.Time, server string) {
	g.advanceClock(now)
	o := g.open[server]
	if o == nil || o.installing || o.pool.maxUnanswered == 0 {
		return
	}
	p := o.pool
	p.releaseSlot(o)
	if i := slices.Index(p.silent, o); i >= 0 {
		p.silent = slices.Delete(p.silent, i, i+1)
	}
	// The process began to install before its actor heard of the displacement.
	if o.displaced {
		o.displaced = false
		p.displaced--
	}
	o.spared, o.installing = true, true
	if p.installing < p.maxUnanswered {
		o.apart = true
		p.installing++
		p.unanswered--
	}
}
