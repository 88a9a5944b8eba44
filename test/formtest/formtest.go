// Package formtest holds the form of what is stored: a golden file of today has every member of the type that is written, so that a
// change of the type without a new version of its form fails a test.
//
// # How it fits
//
// The test of each store calls [Check] with its golden file. Package transports/files has the versions.
//
// Not promised: that the values of the golden file make sense; the tests of the store read them.
package formtest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Check reports each member of the type of v that no golden text has, and each golden text that the type cannot take. A text is a
// file, or a line of one.
func Check(tb testing.TB, v any, golden ...[]byte) {
	tb.Helper()
	t := reflect.TypeOf(v)
	var values []any
	for _, text := range golden {
		if err := rawjson.UnmarshalKnown(text, reflect.New(t).Interface()); err != nil {
			tb.Errorf("%s does not take what is stored: %v; keep the old type for the old version, and raise the version", t, err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			tb.Fatal(err)
		}
		values = append(values, value)
	}
	for _, path := range missingMembers(t, values, "") {
		tb.Errorf("the golden file has no %s: a new member needs a new version of the form, and a golden file with it", path)
	}
}

// missingMembers returns the paths of the members of t that none of the values has.
func missingMembers(t reflect.Type, values []any, path string) (missing []string) {
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil // it writes itself
	}
	switch t.Kind() {
	case reflect.Pointer:
		return missingMembers(t.Elem(), values, path)
	case reflect.Map, reflect.Slice, reflect.Array:
		return missingMembers(t.Elem(), elementsOf(values), path+"/*")
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name == "-" || !t.Field(i).IsExported() {
				continue
			}
			if name == "" {
				name = t.Field(i).Name
			}
			inner := membersOf(values, name)
			if len(inner) == 0 {
				missing = append(missing, path+"/"+name)
				continue
			}
			missing = append(missing, missingMembers(t.Field(i).Type, inner, path+"/"+name)...)
		}
	default: // a value without members
	}
	return missing
}

// elementsOf returns the elements of all arrays and the members of all objects among the values.
func elementsOf(values []any) (all []any) {
	for _, v := range values {
		switch v := v.(type) {
		case []any:
			all = append(all, v...)
		case map[string]any:
			for _, e := range v {
				all = append(all, e)
			}
		}
	}
	return all
}

// membersOf returns the values that stand under a name in the objects among the values.
func membersOf(values []any, name string) (all []any) {
	for _, v := range values {
		if o, ok := v.(map[string]any); ok {
			if e, ok := o[name]; ok {
				all = append(all, e)
			}
		}
	}
	return all
}
