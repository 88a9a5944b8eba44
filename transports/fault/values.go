package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// values are the parsed parameters of a rule, by name. The type of a value follows from Param.Type; the accessors
// below return zero for another type or an absent name.
type values map[string]any

// duration and the functions below are accessors by type: a parameter that the kind does not declare has the zero
// value.
func (v values) duration(name string) time.Duration { d, _ := v[name].(time.Duration); return d }
func (v values) number(name string) float64         { n, _ := v[name].(float64); return n }
func (v values) size(name string) int               { n, _ := v[name].(int); return n }
func (v values) isTrue(name string) bool            { b, _ := v[name].(bool); return b }
func (v values) text(name string) string            { s, _ := v[name].(string); return s }

// maxSize bounds the bytes that a fault may create: a rule must not exhaust the memory of the program in which it is
// tried.
const maxSize = 256 << 20

// readParam parses the text of one parameter by its type and stores the value.
func (v values) readParam(p Param, text string) *RuleError {
	fail := func(want string) *RuleError {
		return &RuleError{Text: fmt.Sprintf("%s=%s is no %s", p.Name, text, strings.SplitN(p.Type, "|", 2)[0]), Fix: want} // the first word of a choice; the types of one word have no |
	}
	switch p.Type {
	// Durations are never negative, and numbers are bounded: effects compute with them unchecked.
	case "duration":
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fail("write a number with its unit, such as 500ms or 2s")
		}
		v[p.Name] = d
	// A number is a part of the delay, anything with a unit a time.
	case "jitter":
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n <= 1 {
			v[p.Name] = n
		} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			v[p.Name] = d
		} else {
			return fail("write a duration, such as 500ms, or a part from 0 to 1")
		}
	// Sizes make effects allocate, so maxSize bounds them here.
	case "size":
		n, ok := readSize(text)
		if !ok {
			return fail("write bytes, such as 4096, 64k or 17m, at most 256m")
		}
		v[p.Name] = n
	// The bounds keep a product with a time or a size from overflowing.
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= -1e9 && n <= 1e9) { // the negation also refuses NaN
			return fail("write a number, such as 3 or 0.5")
		}
		v[p.Name] = n
	// true and false are accepted, because YAML and JSON write them so.
	case "yes":
		switch text {
		case "yes", "true":
			v[p.Name] = true
		case "no", "false":
			v[p.Name] = false
		default:
			return fail("write yes or no")
		}
	case "text":
		v[p.Name] = text
	// Any other type is the list of the allowed words.
	default:
		words := strings.Split(p.Type, "|")
		if !slices.Contains(words, text) {
			return &RuleError{Text: fmt.Sprintf("%s=%s is unknown", p.Name, text), Fix: "write one of " + strings.Join(words, ", ")}
		}
		v[p.Name] = text
	}
	return nil
}

// readSize parses a size in bytes with an optional unit: b, k, m, and longer forms; k is 1,024.
func readSize(text string) (int, bool) {
	// The unit is cut off at the end; what is left must be digits only.
	digits := strings.TrimRight(strings.ToLower(text), "kmib")
	factor := 1
	switch unit := strings.ToLower(text[len(digits):]); unit {
	case "", "b":
	case "k", "kb", "kib":
		factor = 1 << 10
	case "m", "mb", "mib":
		factor = 1 << 20
	default:
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	// The division, and not n*factor, is compared: the product could overflow.
	if err != nil || n < 0 || n > maxSize/factor {
		return 0, false
	}
	return n * factor, true
}

// suggestFix returns advice for an unknown word: the nearest known one, or all of them.
func suggestFix(word string, known []string) string {
	// A list of all words would hide the one that was meant.
	if best := messages.Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}
