package config

import "strings"

// nearest is the candidate that word was probably meant to be, or empty. Case, spaces and the separators "_" and "-" do
// not count; beyond that a third of the word, and two letters at most, may differ. Of several the first wins.
func nearest(word string, candidates []string) string {
	w := plain(word)
	if w == "" || len(w) > 64 {
		return ""
	}
	best, bestAt := min(2, len(w)/3)+1, ""
	for _, c := range candidates {
		if d := distance(w, plain(c)); d < best {
			best, bestAt = d, c
		}
	}
	return bestAt
}

func plain(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", "\t", "").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, delete, replace or swap with their neighbour to get from a to b.
func distance(a, b string) int {
	var before []int // the row before prev, for swaps
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
