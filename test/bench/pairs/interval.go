package main

import (
	"context"
	"math/big"
	"slices"
	"time"
)

// measurePairs runs both halves of each pair. The older one comes first in every second pair, so that neither always meets the
// warmer machine. It returns the values of the older half, and the differences newer minus older.
func measurePairs(ctx context.Context, count int, measure func(newer bool) (time.Duration, error)) (old, differences []time.Duration, err error) {
	for i := range count {
		var half [2]time.Duration
		for _, newer := range []bool{i%2 == 1, i%2 == 0} {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			value, err := measure(newer)
			if err != nil {
				return nil, nil, err
			}
			half[indexOf(newer)] = value
		}
		old, differences = append(old, half[0]), append(differences, half[1]-half[0])
	}
	return old, differences, nil
}

// indexOf returns the index of a half in a pair.
func indexOf(newer bool) int {
	if newer {
		return 1
	}
	return 0
}

// medianOf returns the middle value, the mean of two middle values, and 0 for none.
func medianOf(values []time.Duration) time.Duration {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// intervalOfMedian returns the median of the values, and two values that enclose the true median with at least 95 %
// probability, whatever the distribution: the k-th smallest and the k-th largest, with the largest k for which fewer than k of
// n fair coins fall on one side with at most 2.5 % probability (the inverted sign test).
func intervalOfMedian(values []time.Duration) (low, mid, high time.Duration) {
	n := len(values)
	if n == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(values))
	k := rankOfInterval(n)
	return sorted[k-1], medianOf(values), sorted[n-k]
}

// rankOfInterval returns the k of intervalOfMedian for n values, at least 1.
func rankOfInterval(n int) int {
	// Of n fair coins there are all = 2^n ways, sum of which have at most k on one side; 2.5 % are one in 40.
	all := new(big.Int).Lsh(big.NewInt(1), uint(n))
	sum := new(big.Int)
	for k := 0; k < n/2; k++ {
		sum.Add(sum, new(big.Int).Binomial(int64(n), int64(k)))
		if new(big.Int).Mul(sum, big.NewInt(40)).Cmp(all) > 0 {
			return max(k, 1)
		}
	}
	return max(n/2, 1)
}
