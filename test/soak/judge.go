package main

import (
	"fmt"
	"slices"
	"time"
)

// at is the value below which so much of the times lie.
func at(times []time.Duration, part float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(part*float64(len(sorted)-1))]
}

func (r *series) tell(file string, since time.Duration) {
	var f, before figures
	if len(r.seen) > 0 {
		f, before = r.seen[len(r.seen)-1], r.seen[0]
	}
	minutes := max(since.Minutes(), 0.01)
	fmt.Printf("%-10s %6s  command p50 %7s p99 %7s  socket p50 %7s p99 %7s  %4d MiB  %3d descriptors  %s of processor time a minute\n",
		file, since.Round(time.Second), short(at(r.command, 0.5)), short(at(r.command, 0.99)), short(at(r.socket, 0.5)),
		short(at(r.socket, 0.99)), f.memory>>20, f.descriptors,
		short(time.Duration(float64(f.processor-before.processor)/minutes)))
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// far is how far beyond the bound a machine that does something else may throw the slowest percent of the calls. One that waits
// for a neighbour is beyond it.
const far = 2 * time.Second

func compare(way string, alone, beside []time.Duration) (faults []string) {
	a, b := at(alone, 0.99), at(beside, 0.99)
	bound := a*12/10 + 20*time.Millisecond
	fmt.Printf("%s: p50 %s alone, %s beside; p99 %s alone, %s beside, bound %s: %s\n", way, short(at(alone, 0.5)),
		short(at(beside, 0.5)), short(a), short(b), short(bound), map[bool]string{true: "kept", false: "MISSED"}[b <= bound])
	if b > bound+far {
		faults = append(faults, fmt.Sprintf("%s: p99 is %s beside the others, far beyond %s", way, short(b), short(bound)))
	}
	return faults
}

const (
	// moreMemory and moreDescriptors are what the last quarter of a run may have above the second one: the first fills caches
	// and histories, which have their bounds.
	moreMemory      = 24 << 20
	moreDescriptors = 32
)

func growth(seen []figures) (faults []string) {
	quarter := len(seen) / 4
	if quarter == 0 {
		return nil
	}
	middle := func(part []figures, of func(figures) int) int {
		values := make([]int, len(part))
		for i, f := range part {
			values[i] = of(f)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, g := range []struct {
		what string
		of   func(figures) int
		more int
	}{
		{"bytes of memory", func(f figures) int { return f.memory }, moreMemory},
		{"descriptors", func(f figures) int { return f.descriptors }, moreDescriptors},
	} {
		early, late := middle(seen[quarter:2*quarter], g.of), middle(seen[len(seen)-quarter:], g.of)
		if late > early+g.more {
			faults = append(faults, fmt.Sprintf("%s grow: %d in the second quarter, %d in the last", g.what, early, late))
		}
	}
	return faults
}
