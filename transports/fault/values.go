package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// values are the parameters of a rule, read.
type values map[string]any

func (v values) duration(name string) time.Duration { d, _ := v[name].(time.Duration); return d }
func (v values) number(name string) float64         { n, _ := v[name].(float64); return n }
func (v values) size(name string) int               { n, _ := v[name].(int); return n }
func (v values) isTrue(name string) bool            { b, _ := v[name].(bool); return b }
func (v values) text(name string) string            { s, _ := v[name].(string); return s }

// maxSize bounds what a fault makes up: a rule must not end the program that it is tried in.
const maxSize = 256 << 20

func (v values) readParam(p Param, text string) *RuleError {
	fail := func(want string) *RuleError {
		return &RuleError{Text: fmt.Sprintf("%s=%s is no %s", p.Name, text, strings.SplitN(p.Type, "|", 2)[0]), Fix: want}
	}
	switch p.Type {
	case "duration":
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fail("write a number with its unit, such as 500ms or 2s")
		}
		v[p.Name] = d
	case "jitter":
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n <= 1 {
			v[p.Name] = n
		} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			v[p.Name] = d
		} else {
			return fail("write a duration, such as 500ms, or a part from 0 to 1")
		}
	case "size":
		n, ok := readSize(text)
		if !ok {
			return fail("write bytes, such as 4096, 64k or 17m, at most 256m")
		}
		v[p.Name] = n
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= -1e9 && n <= 1e9) {
			return fail("write a number, such as 3 or 0.5")
		}
		v[p.Name] = n
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
	default:
		words := strings.Split(p.Type, "|")
		if !slices.Contains(words, text) {
			return &RuleError{Text: fmt.Sprintf("%s=%s is unknown", p.Name, text), Fix: "write one of " + strings.Join(words, ", ")}
		}
		v[p.Name] = text
	}
	return nil
}

func readSize(text string) (int, bool) {
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
	if err != nil || n < 0 || n > maxSize/factor {
		return 0, false
	}
	return n * factor, true
}

// suggestFix is what to do about a word that is not known.
func suggestFix(word string, known []string) string {
	if best := messages.Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}
