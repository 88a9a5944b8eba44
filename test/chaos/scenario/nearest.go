package scenario

import "strings"

// nearestWord returns the candidate that a word was probably meant to be, or empty. Case and the separators _ and - do
// not count; beyond that a third of the letters may differ, or one is the beginning of the other. Of several at the
// same distance the longest wins.
func nearestWord(word string, candidates []string) string {
	w := foldWord(word)
	if w == "" || len(w) > 64 {
		return ""
	}
	best, at := len(w), ""
	for _, c := range candidates {
		p := foldWord(c)
		d := editDistance(w, p)
		if min(len(w), len(p)) > 2 && (strings.HasPrefix(w, p) || strings.HasPrefix(p, w)) {
			d = min(d, 1)
		}
		if d <= (min(len(w), len(p))+1)/3 && (d < best || d == best && len(c) > len(at)) {
			best, at = d, c
		}
	}
	return at
}

func foldWord(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// editDistance counts the bytes to insert, delete, replace or swap with their neighbour to get from a to b. Its time is
// the product of the lengths, which nearestWord bounds.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := range len(a) {
		for j := range len(b) {
			replaced := rows[i][j]
			if a[i] != b[j] {
				replaced++
			}
			d := min(replaced, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(a)][len(b)]
}
