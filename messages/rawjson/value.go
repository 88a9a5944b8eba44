package rawjson

import (
	"math"
	"slices"
	"strconv"
)

// AppendValue appends a Go value as JSON, if it consists of nil, bool, string, int, int64, float64, []any, []string and
// map[string]any only: the types that a decoder of JSON yields and that programs write by hand. Members stand in the
// order of their names, as encoding/json puts them. ok is false for every other value, for numbers that JSON does not
// have, and for values nested deeper than [MaxDepth], such as one that contains itself. The caller then drops the bytes
// appended so far and uses encoding/json.
//
// encoding/json inspects the types of values by reflection; BenchmarkAppendValue shows the difference.
func AppendValue(to []byte, v any) (out []byte, ok bool) { return appendValue(to, v, 0) }

// appendValue appends a value with depth lists and objects around it.
func appendValue(to []byte, v any, depth int) ([]byte, bool) {
	if depth > MaxDepth {
		return to, false
	}
	switch v := v.(type) {
	case nil:
		return append(to, "null"...), true
	case bool:
		return strconv.AppendBool(to, v), true
	case string:
		return AppendText(to, v), true
	case int:
		return strconv.AppendInt(to, int64(v), 10), true
	case int64:
		return strconv.AppendInt(to, v, 10), true
	case float64:
		return appendNumber(to, v)
	// A list of strings needs no check of its depth.
	case []string:
		if v == nil {
			return append(to, "null"...), true
		}
		to = append(to, '[')
		for i, s := range v {
			if i > 0 {
				to = append(to, ',')
			}
			to = AppendText(to, s)
		}
		return append(to, ']'), true
	case []any:
		return appendArray(to, v, depth)
	case map[string]any:
		return appendObject(to, v, depth)
	}
	return to, false
}

// appendNumber refuses numbers that need an exponent, and NaN, so that encoding/json writes the former its own way and
// reports the latter.
func appendNumber(to []byte, f float64) ([]byte, bool) {
	if size := math.Abs(f); f != 0 && (size < 1e-6 || size >= 1e21) || math.IsNaN(f) {
		return to, false
	}
	return strconv.AppendFloat(to, f, 'f', -1, 64), true
}

// appendArray appends a list; a nil one is null, as in encoding/json.
func appendArray(to []byte, list []any, depth int) (out []byte, ok bool) {
	if list == nil {
		return append(to, "null"...), true
	}
	to = append(to, '[')
	for i, v := range list {
		if i > 0 {
			to = append(to, ',')
		}
		if to, ok = appendValue(to, v, depth+1); !ok {
			return to, false
		}
	}
	return append(to, ']'), true
}

// appendObject appends an object with sorted names; a nil map is null, as in encoding/json.
func appendObject(to []byte, members map[string]any, depth int) (out []byte, ok bool) {
	if members == nil {
		return append(to, "null"...), true
	}
	// Most arguments have fewer members, and their names need no allocation.
	var few [8]string
	names := few[:0]
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	// One growth for the whole object costs less than one for each member.
	size := len("{}")
	for _, name := range names {
		size += len(name) + len(`"":,`)
		if text, ok := members[name].(string); ok {
			size += len(text) + len(`""`)
		} else {
			// Numbers and words are about this long; longer values grow the slice by themselves.
			size += 8
		}
	}
	to = append(slices.Grow(to, size), '{')
	for i, name := range names {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(AppendText(to, name), ':')
		if to, ok = appendValue(to, members[name], depth+1); !ok {
			return to, false
		}
	}
	return append(to, '}'), true
}
