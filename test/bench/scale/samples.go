package scale

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// median returns the middle value, 0 for none.
func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

// writeSamples adds samples in the form that benchstat reads.
func writeSamples(b *strings.Builder, name string, all []time.Duration) {
	for _, d := range all {
		fmt.Fprintf(b, "Benchmark%s 1 %d ns/op\n", name, d.Nanoseconds())
	}
}
