package main

import (
	"context"
	"slices"
	"testing"
	"time"
)

// The ranks are those of printed tables of the sign test at 5 %, two-sided (critical value plus one).
func TestRanksAreThoseOfTheSignTest(t *testing.T) {
	for n, want := range map[int]int{6: 1, 8: 1, 9: 2, 12: 3, 15: 4, 20: 6, 25: 8, 40: 14} {
		if got := rankOfInterval(n); got != want {
			t.Errorf("%d values: the interval begins at rank %d, want %d", n, got, want)
		}
	}
}

func TestAnIntervalSurroundsItsMedian(t *testing.T) {
	var values []time.Duration
	for i := range 20 {
		values = append(values, time.Duration((i*7)%20+1))
	}
	low, mid, high := intervalOfMedian(values)
	if low != 6 || mid != 10 || high != 15 {
		t.Errorf("the median of 1 to 20 is %d, between %d and %d", mid, low, high)
	}
}

// One half that always went first would pay for what the other finds prepared.
func TestPairsAlternate(t *testing.T) {
	var order []bool
	old, differences, err := measurePairs(context.Background(), 4, func(newer bool) (time.Duration, error) {
		order = append(order, newer)
		if newer {
			return 7, nil
		}
		return 5, nil
	})
	if err != nil || !slices.Equal(order, []bool{false, true, true, false, false, true, true, false}) {
		t.Errorf("the halves ran as %v, %v", order, err)
	}
	if !slices.Equal(old, []time.Duration{5, 5, 5, 5}) || !slices.Equal(differences, []time.Duration{2, 2, 2, 2}) {
		t.Errorf("measured %v and %v", old, differences)
	}
}
