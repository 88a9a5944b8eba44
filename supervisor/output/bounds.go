package output

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds. Schemas of real tools have a few dozen subschemas and a few KiB; answers are rarely larger than 100 KiB.
const (
	// maxSchema and maxContent are in bytes; the depths count nested objects and arrays, the values all values of a document.
	maxSchema        = 256 << 10
	maxSchemaDepth   = 64
	maxSchemaValues  = 20_000
	maxContent       = 4 << 20
	maxContentDepth  = 128
	maxContentValues = 200_000
	// maxSubschemas bounds the compiled schema, maxSteps and maxTime one check: a step is one value against one
	// subschema. A few hundred bytes of references can require years of steps.
	maxSubschemas = 4_000
	maxSteps      = 1_000_000
	maxTime       = time.Second
	// maxComparisons bounds the values of an answer times the values that a schema lists.
	maxComparisons = 20_000_000
	// maxNumber bounds the digits of a number, maxExponent those of its exponent: 1e1000000 takes milliseconds to compare.
	maxNumber   = 400
	maxExponent = 3
	// maxPattern and maxInstructions bound a pattern, in bytes and when compiled; a larger one counts as matching everything.
	maxPattern      = 1_000
	maxInstructions = 2_000
)

// valueCount counts the values of a document.
type valueCount struct {
	values int
	// listed are the values below the keywords const and enum, as far as names can tell: an answer is compared with each.
	listed int
}

// countValues walks through a decoded document. excess says which bound it exceeds; empty if none.
func (c *valueCount) countValues(v any, depth, most int) (excess string) {
	return c.walkValues(v, depth, most, false)
}

// walkValues counts v and everything in it. depth is how many more levels are allowed, most bounds all values.
func (c *valueCount) walkValues(v any, depth, most int, listed bool) (excess string) {
	if c.values++; c.values > most {
		return "has too many values"
	}
	// Values below const and enum are compared with every value of an answer.
	if listed {
		c.listed++
	}
	switch v := v.(type) {
	case map[string]any:
		if depth == 0 {
			return "is nested too deeply"
		}
		for key, member := range v {
			if excess := c.walkValues(member, depth-1, most, listed || key == "const" || key == "enum"); excess != "" {
				return excess
			}
		}
	case []any:
		if depth == 0 {
			return "is nested too deeply"
		}
		for _, element := range v {
			if excess := c.walkValues(element, depth-1, most, listed); excess != "" {
				return excess
			}
		}
	case json.Number:
		// Comparing such a number would make the library compute all of its digits.
		_, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		if len(v) > maxNumber || len(strings.TrimLeft(exponent, "+-0")) > maxExponent {
			return "has a number that is too large"
		}
	}
	return ""
}

// meter counts the steps of one check, and ends it by a panic with errTooMuch, because the library offers no other way out.
type meter struct {
	steps          int
	began          time.Time
	nextClockCheck int // the step at which the clock is read next: reading it costs more than a step
}

// errTooMuch is the value of the panic by which a meter ends a check.
var errTooMuch = errors.New("too much work")

// startCheck resets the meter; the clock is read after the first thousand steps.
func (m *meter) startCheck() { *m = meter{began: time.Now(), nextClockCheck: 1000} }

// addSteps counts the cost of one value against one subschema, and ends the check when it exceeds a bound.
func (m *meter) addSteps(cost int) {
	m.steps += cost
	if m.steps > maxSteps {
		panic(errTooMuch)
	}
	// Steps bound the work where the clock is unreliable, the clock where a step is slow.
	if m.steps > m.nextClockCheck {
		if m.nextClockCheck = m.steps + 1000; time.Since(m.began) > maxTime {
			panic(errTooMuch)
		}
	}
}

// meterAll puts the meter into every subschema of a compiled schema: into its format, which the library calls before it looks at a
// value's parts and before it follows a reference. It reports false if the schema has too many parts. The library has no bound of
// its own.
func (m *meter) meterAll(root *jsonschema.Schema) bool {
	// Schemas refer to one another in cycles, so each is visited once.
	seen := make(map[*jsonschema.Schema]struct{})
	queue := []*jsonschema.Schema{root}
	add := func(s *jsonschema.Schema) {
		if s == nil {
			return
		}
		if _, known := seen[s]; !known {
			seen[s] = struct{}{}
			queue = append(queue, s)
		}
	}
	seen[root] = struct{}{}
	for len(queue) > 0 && len(seen) <= maxSubschemas {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		// The parts are collected before this schema's format is replaced.
		visitSchemas(reflect.ValueOf(s).Elem(), add)
		m.meterSchema(s)
	}
	return len(seen) <= maxSubschemas
}

// visitSchemas calls add for the schemas in the exported fields of a value. It finds them by type, so that keywords which a later
// version of the library adds are metered too.
func visitSchemas(v reflect.Value, add func(*jsonschema.Schema)) {
	switch v.Kind() { //nolint:exhaustive // nothing else holds a schema
	case reflect.Pointer:
		switch p := v.Interface().(type) {
		case *jsonschema.Schema:
			add(p)
		// A dynamic reference is wrapped in a type of its own.
		case *jsonschema.DynamicRef:
			if p != nil {
				add(p.Ref)
			}
		}
	case reflect.Interface:
		if !v.IsNil() {
			visitSchemas(v.Elem(), add)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visitSchemas(v.Index(i), add)
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			visitSchemas(i.Value(), add)
		}
	case reflect.Struct:
		// Other structs of the library hold no subschemas.
		if v.Type() != reflect.TypeFor[jsonschema.Schema]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				visitSchemas(v.Field(i), add)
			}
		}
	}
}

// meterSchema makes the checks of one subschema count, in proportion to the work that they cause.
func (m *meter) meterSchema(s *jsonschema.Schema) {
	// A schema without a format gets one that accepts everything.
	format := jsonschema.Format{Validate: func(any) error { return nil }}
	if s.Format != nil {
		format = *s.Format
	}
	inner, own := format.Validate, 1+len(s.Required)+len(s.DependentRequired)
	format.Validate = func(v any) error {
		// Required members are searched for each object.
		cost := own
		switch v := v.(type) {
		case map[string]any:
			cost += len(v) * (1 + len(s.PatternProperties))
		case []any:
			cost += len(v)
		// A long text costs time to compare and to match.
		case string:
			cost += len(v) / 64
			// Matching a pattern takes time linear in the text.
			if s.Pattern != nil {
				cost += len(v)
			}
		}
		// The panic of addSteps passes through the library to validate.
		m.addSteps(cost)
		return inner(v)
	}
	s.Format = &format
}

// noLoader refuses every reference to another document: a server must not choose what this program fetches.
//
// 2025-11-25 and later, JSON Schema usage: implementations do not dereference a $ref to the network by themselves.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, &jsonschema.LoadURLError{URL: url, Err: errors.New("nothing is fetched")}
}

// anyPattern replaces a pattern that cannot be used, and matches everything: an answer must not fail for our limits.
type anyPattern string

func (anyPattern) MatchString(string) bool { return true }
func (a anyPattern) String() string        { return string(a) }

// compilePattern compiles a pattern of a schema within the bounds.
func compilePattern(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return anyPattern(text), nil
	}
	// The size of the compiled program is known only after its compilation, so a bound on the text comes first.
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return anyPattern(text), nil //nolint:nilerr // JavaScript has patterns that Go lacks
	}
	// Counted repetitions such as (a{100}){100} are short to write and long to run.
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxInstructions {
		return anyPattern(text), nil //nolint:nilerr // see above
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return anyPattern(text), nil //nolint:nilerr // see above
	}
	return re, nil
}
