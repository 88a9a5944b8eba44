package messages

import "strings"

// Nearest returns the candidate that word was probably meant to be, or empty: at most a third of the letters of the
// longer one differ, or the word is the beginning of exactly one candidate. Case, spaces and the separators "_" and "-"
// do not count. Of several the first wins.
//
// Candidates may be a stranger's: one of more than 320 bytes is never meant, and the comparison ends after some ten milliseconds of work with
// the best that was found until then.
func Nearest(word string, candidates []string) string {
	if at := closestCandidate(word, candidates, maxNearest); at != "" {
		return at
	}
	w, matches, at := plainWord(word), 0, ""
	if w == "" || len(w) > maxNearest {
		return ""
	}
	for _, c := range candidates {
		if len(c) <= maxCandidate && strings.HasPrefix(plainWord(c), w) {
			matches, at = matches+1, c
		}
	}
	if matches != 1 {
		return ""
	}
	return at
}

// NearestWithin returns the candidate that word was probably meant to be, or empty: at most most letters, and a third
// of those of the longer one, may differ; a beginning is not enough.
func NearestWithin(word string, candidates []string, most int) string {
	return closestCandidate(word, candidates, most)
}

const (
	// maxNearest bounds the words that are compared, in bytes; maxCandidate what they are compared with, before separators are left out.
	maxNearest, maxCandidate = 80, 4 * maxNearest
	// maxPairs bounds the pairs of letters that one search compares: 5,000 names of 25 letters that all look alike need fewer.
	maxPairs = 1 << 22
)

// closestCandidate returns the candidate that differs least from word: in a third of the letters of the longer one at
// most, and in no more than most.
func closestCandidate(word string, candidates []string, most int) string {
	w := plainWord(word)
	if w == "" || len(word) > maxCandidate || len(w) > maxNearest {
		return ""
	}
	best, at := most+1, ""
	var compared distances
	for _, c := range candidates {
		if len(c) > maxCandidate {
			continue
		}
		p := plainWord(c)
		limit := min(best-1, max(len(w), len(p))/3)
		// So many letters must be inserted or deleted at least.
		if len(w)-len(p) > limit || len(p)-len(w) > limit {
			continue
		}
		if d := compared.between(w, p, limit); d <= limit {
			best, at = d, c
		}
		if best == 0 || compared.pairs > maxPairs {
			break
		}
	}
	return at
}

func plainWord(s string) string { return betweenWords.Replace(strings.ToLower(s)) }

var betweenWords = strings.NewReplacer("_", "", "-", "", " ", "", "\t", "")

// distances computes distances between words, and counts the pairs of letters that it has compared.
type distances struct {
	before, prev, row []int
	pairs             int
}

// between counts the letters to insert, delete, replace or swap with their neighbour to get from a to b. A count above limit may be
// too small.
func (x *distances) between(a, b string, limit int) int {
	if n := len(b) + 1; len(x.row) < n {
		x.before, x.prev, x.row = make([]int, n), make([]int, n), make([]int, n)
	}
	for j := range len(b) + 1 {
		x.prev[j] = j
	}
	least := 0 // of prev
	for i := 1; i <= len(a); i++ {
		x.pairs += len(b)
		row, leastBefore := x.row, least
		row[0], least = i, i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(x.prev[j]+1, row[j-1]+1, x.prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], x.before[j-2]+1)
			}
			least = min(least, row[j])
		}
		// A later row is made of the last two only, the older one by a swap.
		if least > limit && leastBefore >= limit {
			return least
		}
		x.before, x.prev, x.row = x.prev, row, x.before
	}
	return x.prev[len(b)]
}
