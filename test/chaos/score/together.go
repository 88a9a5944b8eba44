package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// groupCases returns which cases are played together in one client, in order. Without a seed each has a client for itself, in the
// order of the table.
func groupCases(cases []Case, seed uint64) (groups [][]Case) {
	if seed == 0 {
		for _, c := range cases {
			groups = append(groups, []Case{c})
		}
		return groups
	}
	const most = 3                                   // more would measure the machine
	rng := rand.New(rand.NewPCG(seed, 0x73636f7265)) // "score"
	cases = append([]Case(nil), cases...)
	rng.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	var open []Case
	size := 1 + rng.IntN(most)
	for _, c := range cases {
		if c.alone || c.exclusive {
			groups = append(groups, []Case{c})
			continue
		}
		if open = append(open, c); len(open) >= size {
			groups, open, size = append(groups, open), nil, 1+rng.IntN(most)
		}
	}
	if len(open) > 0 {
		groups = append(groups, open)
	}
	return groups
}

// playCases plays cases in one client, at the same time, each in a folder of its own. A case that panics keeps the points given before.
func playCases(ctx context.Context, o Options, cases []Case, dir string) []CaseResult {
	ctx, cancel := context.WithTimeout(ctx, caseTime)
	defer cancel()
	results := make([]CaseResult, len(cases))
	driver, err := startAdapter(context.WithoutCancel(ctx), o.Adapter, nil)
	if err == nil {
		// When the limit is reached, everything that a case waits for depends on the adapter, so that its end releases the case.
		defer context.AfterFunc(ctx, driver.killClient)()
	}
	runs := make([]*caseRun, len(cases))
	var all sync.WaitGroup
	for i, c := range cases {
		p := &results[i]
		p.Number, p.Name = c.Number, c.Name
		for _, other := range cases {
			if other.Number != c.Number {
				p.With = append(p.With, other.Number)
			}
		}
		runs[i] = &caseRun{ctx: ctx, dir: filepath.Join(dir, fmt.Sprint(c.Number)), driver: driver}
		if len(cases) > 1 {
			runs[i].prefix = fmt.Sprintf("c%d-", c.Number)
		}
		if err == nil {
			err = os.MkdirAll(runs[i].dir, 0o700)
		}
		if err != nil {
			p.Points = []Point{{Must: "the adapter starts", Seen: err.Error()}}
			continue
		}
		all.Go(func() {
			began := time.Now()
			runs[i].playSafely(c)
			p.TookMs = time.Since(began).Milliseconds()
		})
	}
	all.Wait()
	if driver != nil && !driver.quit(2*time.Second) {
		driver.kill()
	}
	for i, a := range runs {
		a.endCase()
		if len(a.points) > 0 {
			results[i].Points = a.points
		}
	}
	return results
}

// playSafely plays a case; a panic of it costs a point.
func (a *caseRun) playSafely(c Case) {
	defer func() {
		if v := recover(); v != nil {
			a.scorePoint(false, "the case ends", "it panicked: %v", v)
		}
	}()
	c.play(a)
}
