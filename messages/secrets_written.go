package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// shortestLine is the length in bytes from which a line of a secret of several lines is looked for by itself.
	shortestLine = 16
	// LongestWritten bounds the forms that WrittenForms gives, in bytes: a longer one is given in pieces.
	LongestWritten = 1024
)

// WrittenForms returns the ways in which programs write secret values, the longest first: as they are, escaped for JSON (without
// the quotes around it) by the habits of several languages, for the query and the path of a URL, and
// line by line where a line has sixteen bytes or more. A form longer than LongestWritten is given in pieces, so that a text
// that is to be cut can be searched with an overlap of that length. Forms of fewer than six bytes are left out.
func WrittenForms(values []string) []string {
	seen := make(map[string]bool, len(values))
	var all []string
	add := func(form string) {
		if len(form) < shortestSecret || seen[form] {
			return
		}
		seen[form] = true
		if len(form) <= LongestWritten {
			all = append(all, form)
			return
		}
		pieces := (len(form) + LongestWritten - 1) / LongestWritten
		for i := range pieces {
			if piece := form[i*len(form)/pieces : (i+1)*len(form)/pieces]; !seen[piece] {
				seen[piece] = true
				all = append(all, piece)
			}
		}
	}
	for _, value := range values {
		addForms(value, add)
		if !strings.Contains(value, "\n") {
			continue
		}
		addForms(strings.TrimSpace(value), add)
		for line := range strings.SplitSeq(value, "\n") {
			if line = strings.TrimSpace(line); len(line) >= shortestLine {
				addForms(line, add)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// addForms calls add with a secret and with the forms in which programs of other languages write it into JSON and URLs, so
// that a server that quotes its own secret in an error is found out. Forms may repeat.
func addForms(value string, add func(string)) {
	add(value)
	if writtenAlike(value) {
		return
	}
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(value) == nil {
			inside := strings.TrimSuffix(b.String(), "\n")
			inside = inside[1 : len(inside)-1]
			add(inside)
			add(strings.ReplaceAll(inside, "/", `\/`)) // PHP
			add(asciiJSON(inside))                     // Python
		}
	}
	query, path := url.QueryEscape(value), url.PathEscape(value)
	add(query)
	add(strings.ReplaceAll(query, "+", "%20"))
	add(path)
	add(strings.ReplaceAll(path, "%2F", "/"))
	add((&url.URL{Path: value}).EscapedPath())
	add(likeJavaScript.Replace(query)) // encodeURIComponent
}

var likeJavaScript = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// writtenAlike reports whether a value is written alike everywhere.
func writtenAlike(value string) bool {
	for i := range len(value) {
		c := value[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' && c != '~' {
			return false
		}
	}
	return true
}

// asciiJSON writes what is no ASCII as escapes.
func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
