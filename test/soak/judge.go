package main

import (
	"fmt"
	"slices"
	"time"
)

// quantile is the value below which so much of the times lie.
func quantile(times []time.Duration, part float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(part*float64(len(sorted)-1))]
}

// printProgress prints a line a minute, so that the engineer who watches sees a growth before the end.
func (r *measurements) printProgress(file string, since time.Duration) {
	var f, before processStats
	if len(r.stats) > 0 {
		f, before = r.stats[len(r.stats)-1], r.stats[0]
	}
	minutes := max(since.Minutes(), 0.01)
	fmt.Printf("%-10s %6s  command p50 %7s p99 %7s  socket p50 %7s p99 %7s  %4d MiB  %3d descriptors  %s of processor time a minute\n",
		file, since.Round(time.Second), roundTime(quantile(r.command, 0.5)), roundTime(quantile(r.command, 0.99)), roundTime(quantile(r.socket, 0.5)),
		roundTime(quantile(r.socket, 0.99)), f.memory>>20, f.descriptors,
		roundTime(time.Duration(float64(f.processor-before.processor)/minutes)))
}

// roundTime rounds to hundredths of a millisecond, for the tables.
func roundTime(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// tolerance is added to the bound for the slowest percent of the calls, because the machine may do something else. A call that
// waits for a bad neighbour takes longer than that.
const tolerance = 2 * time.Second

// compareLatency compares the slowest percent of the calls beside the bad servers with that of the calls alone. It prints the
// result, and returns a fault only beyond the tolerance.
func compareLatency(way string, alone, together []time.Duration) (faults []string) {
	a, b := quantile(alone, 0.99), quantile(together, 0.99)
	bound := a*12/10 + 20*time.Millisecond
	fmt.Printf("%s: p50 %s alone, %s beside; p99 %s alone, %s beside, bound %s: %s\n", way, roundTime(quantile(alone, 0.5)),
		roundTime(quantile(together, 0.5)), roundTime(a), roundTime(b), roundTime(bound), map[bool]string{true: "kept", false: "MISSED"}[b <= bound])
	if b > bound+tolerance {
		faults = append(faults, fmt.Sprintf("%s: p99 is %s beside the others, far beyond %s", way, roundTime(b), roundTime(bound)))
	}
	return faults
}

const (
	// moreMemory and moreDescriptors are what the last quarter of a run may have above the second one: the first fills caches
	// and histories, which have their bounds.
	moreMemory      = 24 << 20
	moreDescriptors = 32
)

// checkGrowth compares the medians of the second and the last quarter of a run: single rounds differ by what the collector has left.
func checkGrowth(seen []processStats) (faults []string) {
	quarter := len(seen) / 4
	if quarter == 0 {
		return nil
	}
	middle := func(part []processStats, figure func(processStats) int) int {
		values := make([]int, len(part))
		for i, f := range part {
			values[i] = figure(f)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, g := range []struct {
		what   string
		figure func(processStats) int
		more   int
	}{
		{"bytes of memory", func(f processStats) int { return f.memory }, moreMemory},
		{"descriptors", func(f processStats) int { return f.descriptors }, moreDescriptors},
	} {
		early, late := middle(seen[quarter:2*quarter], g.figure), middle(seen[len(seen)-quarter:], g.figure)
		if late > early+g.more {
			faults = append(faults, fmt.Sprintf("%s grow: %d in the second quarter, %d in the last", g.what, early, late))
		}
	}
	return faults
}
