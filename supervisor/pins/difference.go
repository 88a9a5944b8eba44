package pins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// maxLine bounds the characters of a shown line; around is how many equal characters are shown on both sides of a difference.
	maxLine = 2000
	around  = 60
)

// diffLines marks the stretch in which two texts differ, with three equal lines before and after it. It finds one stretch only,
// which suffices for descriptions and costs linear time.
func diffLines(old, now []string) (out []string) {
	// What both texts share at the beginning and at the end is no difference.
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	// The common end must not overlap the common beginning.
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	if head > 3 {
		out = append(out, "  …")
	}
	for _, l := range old[max(head-3, 0):head] {
		out = append(out, "  "+cutLine(l))
	}
	was, added := old[head:len(old)-tail], now[head:len(now)-tail]
	// A description is often one long line: only the part that differs is of interest.
	if len(was) == 1 && len(added) == 1 {
		was, added = narrowLines(was[0], added[0])
	}
	for _, l := range was {
		out = append(out, "- "+cutLine(l))
	}
	for _, l := range added {
		out = append(out, "+ "+cutLine(l))
	}
	rest := now[len(now)-tail:]
	for _, l := range rest[:min(3, len(rest))] {
		out = append(out, "  "+cutLine(l))
	}
	if len(rest) > 3 {
		out = append(out, "  …")
	}
	return out
}

// narrowLines shortens two long lines to the stretch in which they differ.
func narrowLines(old, now string) (was, added []string) {
	// Runes, so that no character is cut in the middle.
	a, b := []rune(old), []rune(now)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	// A little of what is equal is kept on both sides, for orientation.
	short := func(r []rune) []string {
		from, to := max(head-around, 0), min(len(r)-tail+around, len(r))
		text := string(r[from:to])
		if from > 0 {
			text = "…" + text
		}
		if to < len(r) {
			text += "…"
		}
		return []string{text}
	}
	return short(a), short(b)
}

// cutLine bounds a line, and says how much is missing.
func cutLine(l string) string {
	r := []rune(l)
	if len(r) <= maxLine {
		return l
	}
	return fmt.Sprintf("%s … %d more characters; --json shows all", string(r[:maxLine]), len(r)-maxLine)
}

// diffByPath compares two JSON values: one line for each path at which a value went, came, or changed.
func diffByPath(old, now string) (out []string) {
	// A path with a value occurs once in each map, so the maps can be compared key by key.
	was, after := map[string]string{}, map[string]string{}
	flattenValue(parseJSON(old), "", was)
	flattenValue(parseJSON(now), "", after)
	for _, path := range slices.Sorted(maps.Keys(unionKeys(was, after))) {
		a, had := was[path]
		b, there := after[path]
		// Equal values are not shown: schemas are long and their changes short.
		if had && there && a == b {
			continue
		}
		if had {
			out = append(out, cutLine("- "+path+a))
		}
		if there {
			out = append(out, cutLine("+ "+path+b))
		}
	}
	return out
}

// unionKeys returns a map with the keys of both.
func unionKeys(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// parseJSON returns a decoded value; a text that is no JSON stands for itself.
func parseJSON(text string) any {
	if text == "" {
		return nil
	}
	// Numbers stay as they were written, so that 1.0 and 1 are shown as different.
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	return v
}

// flattenValue enters each scalar value under its path. In a list of texts and numbers (required, enum) the order carries no
// meaning worth showing, so each element is an entry of its own.
func flattenValue(v any, path string, into map[string]string) {
	switch v := v.(type) {
	case nil:
		// A missing value has no path of its own.
		if path != "" {
			into[path] = ": null"
		}
	case map[string]any:
		if len(v) == 0 {
			into[path] = ": {}"
		}
		for key, member := range v {
			flattenValue(member, joinPath(path, key), into)
		}
	case []any:
		if len(v) == 0 {
			into[path] = ": []"
		}
		for i, element := range v {
			switch element.(type) {
			// Elements with structure are distinguished by their index.
			case map[string]any, []any, nil:
				flattenValue(element, path+"["+strconv.Itoa(i)+"]", into)
			default:
				into[path+": has "+scalarJSON(element)] = ""
			}
		}
	default:
		into[path] = ": " + scalarJSON(v)
	}
}

// joinPath continues a path; a key with special characters is quoted.
func joinPath(path, key string) string {
	word := messages.Escaped(key)
	// Such a key could be mistaken for a path.
	if word == "" || strings.ContainsAny(word, `.[]": `+"\n\t") {
		word = strconv.Quote(word)
	}
	if path == "" {
		return word
	}
	return path + "." + word
}

// scalarJSON returns a value as JSON, without characters that act on a terminal.
func scalarJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	// Escapes for HTML would hide < and > from the person.
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "?"
	}
	return messages.Escaped(strings.TrimSuffix(b.String(), "\n"))
}
