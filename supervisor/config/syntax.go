package config

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

const (
	// MaxFile bounds a configuration file in bytes. Real files have a few kilobytes.
	MaxFile = 4 << 20
	// maxDepth bounds the nesting of a file, because the parser recurses and Go cannot recover a stack that overflows.
	// Real files need five levels.
	maxDepth = 64
)

// Pos is a place in a file. Line and Col count from 1, Col in characters. The zero value means no place.
type Pos struct{ Line, Col int }

// String returns line:column.
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// sourceText is the content of a file with indexes that turn byte offsets into places and back. It does not change
// after newText, except for scanned.
type sourceText struct {
	data []byte
	// starts holds the offset of the first byte of each line.
	starts []int
	// runeCounts holds the number of characters before each multiple of stride, so that finding a place scans one
	// stride at most. Without it a file with a million values on one line, which a stranger can write, would take
	// quadratic time.
	runeCounts []int
	// scanned counts the bytes that were scanned to find places; a test bounds it.
	scanned int
}

// stride is the distance between two elements of runeCounts, in bytes.
const stride = 1 << 10

// newText indexes the lines and characters of data, which it keeps.
func newText(data []byte) *sourceText {
	t := &sourceText{data: data, starts: []int{0}}
	for i, c := range data {
		if c == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	for i, n := 0, 0; i <= len(data); i += stride {
		t.runeCounts = append(t.runeCounts, n)
		n += countRunes(data[i:min(i+stride, len(data))])
	}
	return t
}

// countRunes counts the bytes that begin a character: all but the continuation bytes of UTF-8.
func countRunes(b []byte) (n int) {
	for _, c := range b {
		if c&0xc0 != 0x80 {
			n++
		}
	}
	return n
}

// runesBefore returns the number of characters that begin before the byte at offset.
func (t *sourceText) runesBefore(offset int) int {
	i := offset / stride
	t.scanned += offset - i*stride
	return t.runeCounts[i] + countRunes(t.data[i*stride:offset])
}

// posAt returns the place of the byte at offset. An offset outside the text counts as its nearer end.
func (t *sourceText) posAt(offset int) Pos {
	offset = min(max(offset, 0), len(t.data))
	line := sort.Search(len(t.starts), func(i int) bool { return t.starts[i] > offset })
	return Pos{line, t.runesBefore(offset) - t.runesBefore(t.starts[line-1]) + 1}
}

// syntaxProblem says what is wrong with a piece of text, and what to do. Its owner adds the place.
type syntaxProblem struct{ text, fix string }

// offsetOf returns the byte at a place; it is the inverse of posAt. A place beyond the text gives its end, and a column
// beyond its line counts on into the next one.
func (t *sourceText) offsetOf(p Pos) int {
	if p.Line < 1 || p.Line > len(t.starts) {
		return len(t.data)
	}
	// remaining is the number of characters before the place, from the start of the text and then from the start of the
	// stride.
	remaining := t.runesBefore(t.starts[p.Line-1]) + max(p.Col, 1) - 1
	i := sort.Search(len(t.runeCounts), func(i int) bool { return t.runeCounts[i] > remaining }) - 1
	at := i * stride
	for remaining -= t.runeCounts[i]; at < len(t.data); at++ {
		t.scanned++
		if utf8.RuneStart(t.data[at]) {
			if remaining == 0 {
				break
			}
			remaining--
		}
	}
	return at
}

// plainText checks what holds for text of every syntax: its size and its encoding. On a problem, at is the offset of
// the fault.
func plainText(data []byte) (t *sourceText, at int, bad *syntaxProblem) {
	switch {
	// Editors on Windows may save UTF-16, whose bytes would only be reported as broken UTF-8.
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return newText(nil), 0, &syntaxProblem{"the file is UTF-16", "save it as UTF-8"}
	case len(data) > MaxFile:
		return newText(nil), 0, &syntaxProblem{fmt.Sprintf("the file is larger than %d MiB", MaxFile>>20), ""}
	}
	t = newText(bytes.TrimPrefix(data, []byte("\ufeff")))
	if at = invalidUTF8(t.data); at >= 0 {
		return t, at, &syntaxProblem{"the file is not UTF-8 text", "save it as UTF-8"}
	}
	return t, 0, nil
}

// parseText reads JSON with comments and trailing commas. On a problem, at is the offset of the fault.
func parseText(data []byte) (v hujson.Value, t *sourceText, at int, bad *syntaxProblem) {
	if t, at, bad = plainText(data); bad != nil {
		return v, t, at, bad
	}
	if len(bytes.TrimSpace(t.data)) == 0 {
		return v, t, 0, &syntaxProblem{"the file is empty", `write {"mcpServers": {}}`}
	}
	// The depth is checked before the parser recurses into it.
	if at = tooDeep(t.data); at >= 0 {
		return v, t, at, &syntaxProblem{fmt.Sprintf("more than %d brackets are open", maxDepth), ""}
	}
	// The parser wants a line comment to end with a newline, at the end of the file too. The limited capacity makes
	// append copy the data and keep the caller's slice unchanged.
	v, err := hujson.Parse(append(t.data[:len(t.data):len(t.data)], '\n'))
	if err != nil {
		at, bad = t.explainError(err)
	}
	return v, t, at, bad
}

// explainError translates the parser's error into a problem in plain words. It drops the parser's own text, which may
// quote a broken string of the file and so a secret.
func (t *sourceText) explainError(err error) (at int, bad *syntaxProblem) {
	var line, col int
	// The parser gives the place only in its text, as bytes from 1. If a new version changes that form, the problem
	// stands at the start of the file, and a test fails.
	if _, e := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &col); e == nil && line <= len(t.starts) {
		at = min(t.starts[line-1]+col-1, len(t.data))
	}
	// The habit of YAML and shells is common enough for a sentence of its own.
	if at < len(t.data) && t.data[at] == '#' {
		return at, &syntaxProblem{"# begins no comment in JSON", "write // instead"}
	}
	_, what, _ := strings.Cut(err.Error(), fmt.Sprintf("column %d: ", col))
	switch {
	case strings.Contains(what, "unexpected EOF"):
		return len(t.data), &syntaxProblem{"the file ends in the middle", "close what is open: a quote, a bracket or a comment"}
	case strings.HasPrefix(what, "invalid literal") && at < len(t.data) && t.data[at] == '"':
		return at, &syntaxProblem{"this text has a line break or a wrong escape in it",
			`write \n for a line break and \\ for a backslash`}
	case strings.HasPrefix(what, "invalid literal"):
		return at, &syntaxProblem{"this is no JSON value", `text stands in double quotes`}
	case strings.Contains(what, "after object value"):
		return at, &syntaxProblem{"a comma or a closing brace is missing before this", ""}
	case strings.Contains(what, "after array value"):
		return at, &syntaxProblem{"a comma or a closing bracket is missing before this", ""}
	case strings.Contains(what, "after object name"):
		return at, &syntaxProblem{"a colon is missing before this", ""}
	case strings.Contains(what, "at start of object name"):
		return at, &syntaxProblem{"a key in double quotes is expected here", ""}
	case strings.Contains(what, "start of value"):
		return at, &syntaxProblem{"a value is expected here", `text stands in double quotes`}
	case strings.Contains(what, "after top-level value"):
		return at, &syntaxProblem{"the file goes on after its closing brace", "a file holds one object"}
	}
	return at, &syntaxProblem{"this is not JSON", ""}
}

// invalidUTF8 returns the offset of the first byte that is no UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// tooDeep returns the offset of the first bracket beyond maxDepth, or -1. Brackets in strings and comments do not
// count.
func tooDeep(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return i
			}
		case ']', '}':
			depth--
		// A bracket inside a string opens nothing; a backslash hides the next byte.
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '/':
			n := commentLen(b[i:])
			if n < 0 {
				// The rest of the text is comment, and the parser will report that it has no end.
				return -1
			}
			i += n
		}
	}
	return -1
}

// commentLen returns how many bytes of the comment with which b begins follow its first byte: 0 if there is no comment,
// -1 if it has no end.
func commentLen(b []byte) int {
	var end []byte
	switch {
	case bytes.HasPrefix(b, []byte("//")):
		end = []byte("\n")
	case bytes.HasPrefix(b, []byte("/*")):
		end = []byte("*/")
	default:
		return 0
	}
	n := bytes.Index(b[2:], end)
	if n < 0 {
		return -1
	}
	return 2 + n + len(end) - 1
}
