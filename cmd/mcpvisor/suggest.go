package main

import (
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

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

// distance counts the bytes to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// didYouMean continues a sentence about an unknown word.
func didYouMean(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", messages.Line(near, 80))
	}
	return ""
}
