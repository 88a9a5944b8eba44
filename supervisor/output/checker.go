package output

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// maxKept bounds the compiled schemas that a Checker keeps. One of a usual tool takes about 10 KiB.
	maxKept = 512
	// maxFaults and maxFlaw bound what a verdict repeats.
	maxFaults = 3
	maxFlaw   = 600
)

// Checker compares answers with schemas and keeps what it compiled. The zero value is ready to use, by many goroutines
// at once.
type Checker struct {
	mu   sync.RWMutex
	seed maphash.Seed
	kept map[uint64]*schema
}

// schema is a schema that was compiled, or cannot be.
type schema struct {
	raw      string // to tell two with one hash apart
	unusable string

	mu       sync.Mutex // of compiled, whose meter counts one check at a time
	compiled *jsonschema.Schema
	meter    meter
	constant int // how many values it compares with (const, enum)
}

// Flaw says how a result object of tools/call misses what the tool's output schema promises; it is empty if it does
// not, if there is no schema, and for an answer with isError, which promises nothing.
func (c *Checker) Flaw(outputSchema, result json.RawMessage) string {
	if len(outputSchema) == 0 {
		return ""
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || string(members["isError"]) == "true" {
		return "" // a result that is no object is somebody else's remark
	}
	structured, ok := members["structuredContent"]
	if !ok {
		return "the answer has no structuredContent, which the tool's output schema promises"
	}
	s := c.schema(outputSchema)
	if s.unusable != "" {
		return "the answer is not checked, because the tool's output schema cannot be used: " + s.unusable
	}
	faults, unchecked := s.check(structured)
	switch {
	case unchecked != "":
		return "the answer is not checked: " + unchecked
	case len(faults) == 0:
		return ""
	}
	more := ""
	if len(faults) > maxFaults {
		faults, more = faults[:maxFaults], " and more"
	}
	const head = "the answer is not what the tool's output schema promises: "
	return messages.Line(head+strings.Join(faults, "; ")+more, maxFlaw)
}

// schema compiles, or finds what was compiled.
func (c *Checker) schema(raw json.RawMessage) *schema {
	c.mu.RLock()
	ready := c.kept != nil
	var key uint64
	var s *schema
	if ready {
		key = maphash.Bytes(c.seed, raw)
		s = c.kept[key]
	}
	c.mu.RUnlock()
	if s != nil && s.raw == string(raw) {
		return s
	}
	s = compile(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept, c.seed = make(map[uint64]*schema), maphash.MakeSeed()
	}
	if len(c.kept) >= maxKept {
		for other := range c.kept { // any of them: a program with more tools than that compiles some again
			delete(c.kept, other)
			break
		}
	}
	c.kept[maphash.Bytes(c.seed, raw)] = s
	return s
}

// check compares a value. unchecked says why that could not be done.
func (s *schema) check(raw json.RawMessage) (faults []string, unchecked string) {
	unchecked, invalid := s.validate(raw)
	return explain(invalid), unchecked
}

// validate is check with the error of the library.
func (s *schema) validate(raw json.RawMessage) (unchecked string, invalid error) {
	if len(raw) > maxContent {
		return "its structuredContent is too large", nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return "its structuredContent cannot be read", nil
	}
	var size census
	if wrong := size.take(value, maxContentDepth, maxContentValues); wrong != "" {
		return "its structuredContent " + wrong, nil
	}
	if s.constant > 0 && size.values > maxComparisons/s.constant {
		return "comparing it with the values that the schema lists takes too long", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		switch v := recover(); v {
		case nil:
		case errTooMuch:
			unchecked, invalid = "a check against the tool's output schema takes too long", nil
		default: // the library has met fewer schemas than there are
			unchecked, invalid = "the library that reads the tool's output schema gave up", nil
		}
	}()
	s.meter.begin()
	return "", s.compiled.Validate(value)
}
