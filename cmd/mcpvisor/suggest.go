package main

import "strings"

// nearest is the candidate that word was probably meant to be, or empty: at most a third of the letters differ, or the
// word is the beginning of exactly one candidate. Case and the separators _ and - do not count.
func nearest(word string, candidates []string) string {
	w := plain(word)
	if w == "" || len(w) > 80 {
		return ""
	}
	best, at := len(w)/3+1, ""
	begun, beginning := 0, ""
	for _, c := range candidates {
		p := plain(c)
		if d := distance(w, p); d < best {
			best, at = d, c
		}
		if strings.HasPrefix(p, w) {
			begun, beginning = begun+1, c
		}
	}
	if at == "" && begun == 1 {
		return beginning
	}
	return at
}

func plain(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance counts the bytes to insert, delete, replace or swap with their neighbour to get from a to b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
