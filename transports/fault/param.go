package fault

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Param is a parameter of a fault. Default is written like a value in a rule.
type Param struct {
	Name, Default, Does string
	// Type is the form of the value:
	//
	//	duration  a time with its unit, such as 500ms or 2s: not negative, and at most a year
	//	count     a whole number from 0 to ten million
	//	size      a number of bytes, such as 4096, 64k or 17MiB, at most 1 GiB
	//	rate      a number per second, above 0 and at most 100,000
	//	chance    a probability from 0 to 1
	//	jitter    a duration, or a part from 0 to 1
	//	truth     true or yes, false or no
	//	word      one of Words
	//	status    one of Words; in a rule any other HTTP status from 300 to 599, too
	//	code      the code of a JSON-RPC error, with its minus or without
	//	text      any text
	Type string
	// Words are the values of a word, and the most telling ones of a status.
	Words []string

	// where are the locations at which the parameter counts. inRule is its default in a rule if it is another there.
	where  Location
	inRule *string
}

// durationParam and the functions below make the parameters of the catalogue, each of one type: see [Param].
func durationParam(name, value, does string) Param { return newParam("duration", name, value, does) }
func countParam(name, value, does string) Param    { return newParam("count", name, value, does) }
func sizeParam(name, value, does string) Param     { return newParam("size", name, value, does) }
func rateParam(name, value, does string) Param     { return newParam("rate", name, value, does) }
func truthParam(name, value, does string) Param    { return newParam("truth", name, value, does) }
func textParam(name, value, does string) Param     { return newParam("text", name, value, does) }

// wordParam returns a parameter whose value is one of some words.
func wordParam(name, value, does string, words ...string) Param {
	return newParam("word", name, value, does, words...)
}

// statusParam returns the parameter for an HTTP status; words are those that tell most.
func statusParam(value string, words ...string) Param {
	return newParam("status", "status", value, "its status", words...)
}

// chanceParam returns the probability with which the fault strikes. Rules have a chance of their own.
func chanceParam(name, value, does string) Param {
	return newParam("chance", name, value, does).only(scenarios)
}

func newParam(form, name, value, does string, words ...string) Param {
	return Param{Name: name, Default: value, Does: does, Type: form, Words: words, where: rules | scenarios}
}

// only returns the parameter for some locations alone.
func (p Param) only(at Location) Param { p.where = at; return p }

// ruleDefault returns the parameter with another default in a rule.
func (p Param) ruleDefault(value string) Param { p.inRule = &value; return p }

// findParam returns the parameter with a name.
func findParam(params []Param, name string) (Param, bool) {
	i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return params[i], true
}

// paramNames returns the names of parameters, for suggestions.
func paramNames(params []Param) (names []string) {
	for _, p := range params {
		names = append(names, p.Name)
	}
	return names
}

// These bounds limit the parameters: a fault breaks a server, and not the program or the machine on which it is tried.
const (
	maxDuration = 24 * time.Hour * 366
	maxCount    = 10_000_000
	maxSize     = 1 << 30
	maxRate     = 100_000
)

// Values are the parameters of one fault by name. The type of a value follows from Param.Type; the methods return zero for
// another type, and for a parameter that the fault does not have.
type Values map[string]any

// Duration returns a duration, and a jitter that is one.
func (v Values) Duration(name string) time.Duration { d, _ := v[name].(time.Duration); return d }

// Int returns a count, a size, a status, or a code without its minus.
func (v Values) Int(name string) int { n, _ := v[name].(int); return n }

// Float returns a rate, a chance, and a jitter that is a part.
func (v Values) Float(name string) float64 { n, _ := v[name].(float64); return n }

// Bool returns a truth.
func (v Values) Bool(name string) bool { b, _ := v[name].(bool); return b }

// Text returns a text or a word.
func (v Values) Text(name string) string { s, _ := v[name].(string); return s }

// readParam reads the text of one parameter by its type and stores the value.
func (v Values) readParam(p Param, at Location, text string) *RuleError {
	value, fix := p.read(at, text)
	if fix != "" {
		problem := "is no " + p.Type
		if p.Type == "word" || p.Type == "truth" {
			problem = "is unknown"
		}
		return &RuleError{Text: p.Name + "=" + text + " " + problem, Fix: fix}
	}
	v[p.Name] = value
	return nil
}

// read returns the value of a text, or else what to write instead.
func (p Param) read(at Location, text string) (value any, fix string) {
	switch p.Type {
	case "duration":
		if d, err := time.ParseDuration(text); err == nil && d >= 0 && d <= maxDuration {
			return d, ""
		}
		return nil, "write a number with its unit, such as 500ms or 2s"
	case "jitter": // a number is a part of the delay, anything with a unit a time
		if n, ok := readNumber(text); ok && n >= 0 && n <= 1 {
			return n, ""
		}
		if d, err := time.ParseDuration(text); err == nil && d >= 0 && d <= maxDuration {
			return d, ""
		}
		return nil, "write a duration, such as 500ms, or a part from 0 to 1"
	case "count":
		if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= maxCount {
			return n, ""
		}
		return nil, fmt.Sprintf("write a whole number from 0 to %d", maxCount)
	case "code": // a key=value of a command line is easier without the minus, and a person copies it with
		if n, err := strconv.Atoi(strings.TrimPrefix(text, "-")); err == nil && n >= 0 && n <= maxCount {
			return n, ""
		}
		return nil, "write the code of an error, such as -32603"
	case "size":
		if n, ok := readSize(text); ok {
			return n, ""
		}
		return nil, "write bytes, such as 4096, 64KiB or 17MiB, at most 1GiB"
	case "rate":
		if n, ok := readNumber(text); ok && n > 0 && n <= maxRate {
			return n, ""
		}
		return nil, fmt.Sprintf("write a number per second, more than 0 and at most %d", maxRate)
	case "chance":
		if n, ok := readNumber(text); ok && n >= 0 && n <= 1 {
			return n, ""
		}
		return nil, "write a probability from 0 to 1"
	case "truth": // a person writes yes in a rule, YAML and JSON write true
		switch text {
		case "yes", "true":
			return true, ""
		case "no", "false":
			return false, ""
		}
		return nil, "write yes or no"
	case "status":
		n, err := strconv.Atoi(text)
		if slices.Contains(p.Words, text) || err == nil && n >= 300 && n <= 599 && !at.Has(scenarios) {
			return n, ""
		}
		if at.Has(scenarios) {
			return nil, "write one of " + strings.Join(p.Words, ", ")
		}
		return nil, "write a number from 300 to 599, such as " + p.Default
	case "word":
		if slices.Contains(p.Words, text) {
			return text, ""
		}
		if near := messages.Nearest(text, p.Words); near != "" {
			return nil, fmt.Sprintf("did you mean %q?", near)
		}
		return nil, "write one of " + strings.Join(slices.DeleteFunc(slices.Clone(p.Words), func(w string) bool { return w == "" }), ", ")
	}
	return text, ""
}

// readNumber parses a number that is one: the bounds of the types also refuse infinity.
func readNumber(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsNaN(n)
}

// readSize parses a size in bytes with an optional unit: b, k, m, g, and longer forms; k is 1,024.
func readSize(text string) (int, bool) {
	// The unit is cut off at the end; what is left must be digits only.
	text = strings.ToLower(text)
	digits := strings.TrimRight(text, "kmgib")
	factor := 1
	switch text[len(digits):] {
	case "", "b":
	case "k", "kb", "kib":
		factor = 1 << 10
	case "m", "mb", "mib":
		factor = 1 << 20
	case "g", "gb", "gib":
		factor = 1 << 30
	default:
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	// The division, and not n*factor, is compared: the product could overflow.
	if err != nil || n < 0 || n > maxSize/factor {
		return 0, false
	}
	return n * factor, true
}
