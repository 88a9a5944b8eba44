package score

import (
	"slices"
	"testing"
)

// TestCasesAreCombinedByTheSeed: each case once, the same for the same seed, and those that need the client for themselves alone.
func TestCasesAreCombinedByTheSeed(t *testing.T) {
	numbers := func(groups [][]Case) (all []int) {
		for _, g := range groups {
			for _, c := range g {
				if all = append(all, c.Number); len(g) > 1 && (c.alone || c.exclusive) {
					t.Errorf("case %d is not alone", c.Number)
				}
			}
			all = append(all, 0)
		}
		return all
	}
	one, second, other := numbers(groupCases(Cases(), 1)), numbers(groupCases(Cases(), 1)), numbers(groupCases(Cases(), 2))
	if !slices.Equal(one, second) || slices.Equal(one, other) {
		t.Error("the seed does not decide")
	}
	for _, c := range Cases() {
		if n := len(slices.DeleteFunc(slices.Clone(one), func(m int) bool { return m != c.Number })); n != 1 {
			t.Errorf("case %d is played %d times", c.Number, n)
		}
	}
	if plain := groupCases(Cases(), 0); len(plain) != len(Cases()) || plain[3][0].Number != 4 {
		t.Error("without a seed the table is the order")
	}
	if len(groupCases(Cases(), 1)) > len(Cases())*3/4 {
		t.Error("hardly any cases are combined")
	}
}
