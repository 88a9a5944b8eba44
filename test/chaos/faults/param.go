package faults

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Type is the form that the text of a parameter must have.
type Type string

const (
	// Duration is a time with its unit, as time.ParseDuration reads it: not negative, and at most a year.
	Duration Type = "duration"
	// Count is a whole number from 0 to ten million.
	Count Type = "count"
	// Size is a number of bytes, with an optional KiB, MiB or GiB, at most 1 GiB.
	Size Type = "size"
	// Rate is a number per second, above 0 and at most 100,000.
	Rate Type = "rate"
	// Chance is a probability from 0 to 1.
	Chance Type = "chance"
	// Bool is true or false.
	Bool Type = "truth"
	// Choice is one of Param.Choices.
	Choice Type = "word"
	// Text is any text.
	Text Type = "text"
)

// Param describes one parameter of a fault.
type Param struct {
	Name string
	// Default is the value where a scenario gives none.
	Default string
	Type    Type
	// Description is half a sentence that explains the value.
	Description string
	// Choices are the possible values of a Choice; nil for other types.
	Choices []string
}

// These bounds limit the parameters of a scenario, because a fault is to break the server and not the machine on which it runs:
// a year, ten million, a GiB, and 100,000 per second.
const (
	maxDuration = 24 * time.Hour * 366
	maxCount    = 10_000_000
	maxSize     = 1 << 30
	maxRate     = 100_000
)

// valueProblem returns what is wrong with a value, empty if nothing is.
func (p Param) valueProblem(value string) string {
	switch p.Type {
	case Duration:
		if d, err := time.ParseDuration(value); err != nil || d < 0 || d > maxDuration {
			return fmt.Sprintf("%q is no time: write it like 250ms, 5s or 2m", value)
		}
	case Count:
		if n, err := strconv.Atoi(value); err != nil || n < 0 || n > maxCount {
			return fmt.Sprintf("%q is no whole number from 0 to %d", value, maxCount)
		}
	case Size:
		if _, ok := parseSize(value); !ok {
			return fmt.Sprintf("%q is no size: write it like 4096, 64KiB or 32MiB, at most 1GiB", value)
		}
	case Rate:
		if r, err := strconv.ParseFloat(value, 64); err != nil || !(r > 0) || r > maxRate {
			return fmt.Sprintf("%q is no rate: a number per second, more than 0 and at most %d", value, maxRate)
		}
	case Chance:
		if c, err := strconv.ParseFloat(value, 64); err != nil || !(c >= 0 && c <= 1) {
			return fmt.Sprintf("%q is no probability from 0 to 1", value)
		}
	case Bool:
		if value != "true" && value != "false" {
			return fmt.Sprintf("%q is neither true nor false", value)
		}
	case Choice:
		if slices.Contains(p.Choices, value) {
			return ""
		}
		if near := messages.Nearest(value, p.Choices); near != "" {
			return fmt.Sprintf("%q is not known: did you mean %q?", value, near)
		}
		return fmt.Sprintf("%q is not one of %s", value, strings.Join(p.Choices, ", "))
	case Text:
	}
	return ""
}

// parseSize reads a number of bytes, and a Count too, which is a number without a unit.
func parseSize(text string) (int, bool) {
	unit := 1
	for suffix, u := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if t, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = strings.TrimSpace(t), u
			break
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxSize/unit {
		return 0, false
	}
	return n * unit, true
}

// Values are the parameters of one planned fault with the defaults filled in. An unreadable value counts as the default,
// because CheckParams has refused it before a run.
type Values struct {
	kind   Kind
	params map[string]string
}

// With returns the fault's parameters with the given values.
func (k Kind) With(params map[string]string) Values { return Values{k, params} }

// Text returns the value as text, empty for a parameter that the fault does not have.
func (v Values) Text(name string) string {
	p, ok := v.kind.findParam(name)
	if !ok {
		return ""
	}
	if text, ok := v.params[name]; ok && p.valueProblem(text) == "" {
		return text
	}
	return p.Default
}

// Duration returns a Duration, 0 for a parameter that the fault does not have.
func (v Values) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(v.Text(name))
	return d
}

// Int returns a Count or a Size, 0 for a parameter that the fault does not have.
func (v Values) Int(name string) int {
	n, _ := parseSize(v.Text(name))
	return n
}

// Float returns a Rate or a Chance, 0 for a parameter that the fault does not have.
func (v Values) Float(name string) float64 {
	f, err := strconv.ParseFloat(v.Text(name), 64)
	if err != nil || math.IsNaN(f) {
		return 0
	}
	return f
}

// Bool returns a Bool, false for a parameter that the fault does not have.
func (v Values) Bool(name string) bool { return v.Text(name) == "true" }
