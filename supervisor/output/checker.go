package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// maxCompiled bounds the compiled schemas that a Checker keeps. One of a usual tool takes about 10 KiB.
	maxCompiled = 512
	// maxProblems and maxProblemText bound what a text repeats of the problems.
	maxProblems    = 3
	maxProblemText = 600
)

// Checker compares answers with schemas and keeps the compiled schemas. The zero value is ready for use, by many goroutines
// at once.
type Checker struct {
	// mu guards schemas; seed makes the keys unpredictable for a server that wants collisions.
	mu      sync.RWMutex
	seed    maphash.Seed
	schemas map[uint64]*compiledSchema
}

// compiledSchema is a schema that was compiled, or the reason why it cannot be.
type compiledSchema struct {
	raw      string // distinguishes two schemas with one hash
	unusable string

	mu       sync.Mutex // guards compiled, whose meter counts one check at a time
	compiled *jsonschema.Schema
	meter    meter
	constant int // how many values the schema lists (const, enum)
}

// Flaw returns how a result object of tools/call violates the tool's output schema; it is empty if it does
// not, if there is no schema, and for an answer with isError, to which the schema does not apply.
func (c *Checker) Flaw(outputSchema, result json.RawMessage) string {
	// A tool without an output schema promises nothing.
	if len(outputSchema) == 0 {
		return ""
	}
	// Only the outermost members are needed, so their values stay raw.
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || string(members["isError"]) == "true" {
		// Another check reports a result that is no object.
		return ""
	}
	// A tool with an output schema must give structured content, not only text.
	structured, ok := members["structuredContent"]
	if !ok {
		return "the answer has no structuredContent, which the tool's output schema promises"
	}
	// A schema that cannot be used is reported with every answer, because the tool's author should learn it.
	s := c.schemaFor(outputSchema)
	if s.unusable != "" {
		return "the answer is not checked, because the tool's output schema cannot be used: " + s.unusable
	}
	faults, unchecked := s.checkValue(structured)
	switch {
	// An answer that could not be compared is reported as such, and neither as right nor as wrong.
	case unchecked != "":
		return "the answer is not checked: " + unchecked
	case len(faults) == 0:
		return ""
	}
	more := ""
	// A person or a model needs a few examples and not the whole list.
	if len(faults) > maxProblems {
		faults, more = faults[:maxProblems], " and more"
	}
	const head = "the answer is not what the tool's output schema promises: "
	return messages.Line(head+strings.Join(faults, "; ")+more, maxProblemText)
}

// schemaFor returns the compiled schema, from the cache or new. It compiles without the lock: two goroutines may compile the same
// schema at once, with equal results.
func (c *Checker) schemaFor(raw json.RawMessage) *compiledSchema {
	c.mu.RLock()
	// The zero value has neither a map nor a seed.
	ready := c.schemas != nil
	var key uint64
	var s *compiledSchema
	if ready {
		key = maphash.Bytes(c.seed, raw)
		s = c.schemas[key]
	}
	c.mu.RUnlock()
	// The hash may collide; the text decides.
	if s != nil && s.raw == string(raw) {
		return s
	}
	s = compileSchema(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schemas == nil {
		c.schemas, c.seed = make(map[uint64]*compiledSchema), maphash.MakeSeed()
	}
	if len(c.schemas) >= maxCompiled {
		// Any one: a program with more tools than that compiles some again.
		for other := range c.schemas {
			delete(c.schemas, other)
			break
		}
	}
	// The key is computed with the seed of the map that exists now.
	c.schemas[maphash.Bytes(c.seed, raw)] = s
	return s
}

// checkValue compares a value. unchecked says why that could not be done; empty if it was.
func (s *compiledSchema) checkValue(raw json.RawMessage) (faults []string, unchecked string) {
	unchecked, invalid := s.validate(raw, "its structuredContent", "the tool's output schema")
	return explainFaults(invalid), unchecked
}

// Validate checks any value against any schema, within the same bounds. unchecked says, as a clause about the schema, why that
// could not be done; invalid is what the value violates. Both are empty for a value that fits.
func Validate(schema, value json.RawMessage) (unchecked string, invalid *jsonschema.ValidationError) {
	s := compileSchema(schema)
	if s.unusable != "" {
		return s.unusable, nil
	}
	unchecked, err := s.validate(value, "the value", "it")
	if unchecked == "" && err != nil && !errors.As(err, &invalid) {
		unchecked = messages.Line(err.Error(), 200)
	}
	return unchecked, invalid
}

// validate is checkValue with the library's own error, and with the caller's words for the value and the schema. Only one check
// of a schema runs at a time, because they share its meter.
func (s *compiledSchema) validate(raw json.RawMessage, subject, rules string) (unchecked string, invalid error) {
	if len(raw) > maxContent {
		return subject + " is too large", nil
	}
	// The library's own decoder keeps numbers exact.
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return subject + " cannot be read", nil
	}
	var size valueCount
	if excess := size.countValues(value, maxContentDepth, maxContentValues); excess != "" {
		return subject + " " + excess, nil
	}
	// Comparisons inside const and enum are not metered, so their product is bounded before.
	if s.constant > 0 && size.values > maxComparisons/s.constant {
		return "comparing it with the values that the schema lists takes too long", nil
	}
	// Checks of one schema wait for one another; those of different schemas do not.
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		// The meter ends a check by a panic, which is caught here.
		switch v := recover(); v {
		case nil:
		case errTooMuch:
			unchecked, invalid = "a check against "+rules+" takes too long", nil
		default: // the library does not foresee every schema
			unchecked, invalid = "the library that reads "+rules+" gave up", nil
		}
	}()
	s.meter.startCheck()
	return "", s.compiled.Validate(value)
}
