package messages

import "strings"

// Nearest returns the candidate that word was probably meant to be, or empty: at most a third of the letters of the
// longer one differ, or the word is the beginning of exactly one candidate. Case, spaces and the separators "_" and "-"
// do not count. Of several the first wins.
func Nearest(word string, candidates []string) string {
	if at := closestCandidate(word, candidates, maxNearest); at != "" {
		return at
	}
	w, matches, at := plainWord(word), 0, ""
	for _, c := range candidates {
		if w != "" && len(w) <= maxNearest && strings.HasPrefix(plainWord(c), w) {
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

// maxNearest bounds the words that are compared, in bytes.
const maxNearest = 80

// closestCandidate returns the candidate that differs least from word: in a third of the letters of the longer one at
// most, and in no more than most.
func closestCandidate(word string, candidates []string, most int) string {
	w := plainWord(word)
	if w == "" || len(w) > maxNearest {
		return ""
	}
	best, at := most+1, ""
	for _, c := range candidates {
		p := plainWord(c)
		if d := editDistance(w, p); d < best && d <= max(len(w), len(p))/3 {
			best, at = d, c
		}
	}
	return at
}

func plainWord(s string) string { return betweenWords.Replace(strings.ToLower(s)) }

var betweenWords = strings.NewReplacer("_", "", "-", "", " ", "", "\t", "")

// editDistance counts the letters to insert, delete, replace or swap with their neighbour to get from a to b.
func editDistance(a, b string) int {
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
