package foreign

import (
	"github.com/tailscale/hujson"
)

// textValue returns a JSON string at an offset. Its end equals its start, by which translateValue recognises texts that
// this package made.
func textValue(s string, at int) hujson.Value {
	return hujson.Value{Value: hujson.String(s), StartOffset: at, EndOffset: at}
}

// boolValue returns a truth value at an offset.
func boolValue(b bool, at int) hujson.Value {
	return hujson.Value{Value: hujson.Bool(b), StartOffset: at, EndOffset: at}
}

// objectValue returns an object of members at an offset.
func objectValue(at int, members ...hujson.ObjectMember) hujson.Value {
	return hujson.Value{Value: &hujson.Object{Members: members}, StartOffset: at, EndOffset: at}
}

// newMember returns a member whose name stands at an offset.
func newMember(name string, at int, v hujson.Value) hujson.ObjectMember {
	return hujson.ObjectMember{Name: textValue(name, at), Value: v}
}

// textOf returns the text of a JSON string; ok is false for any other value.
func textOf(v hujson.Value) (string, bool) {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return "", false
	}
	return l.String(), true
}

// isNumber, isNull and isTrue also accept a value without content, which valueAt returns for a missing key.
func isNumber(v hujson.Value) bool { return v.Value != nil && v.Value.Kind() == '0' }

// isNull reports whether v is null or absent.
func isNull(v hujson.Value) bool { return v.Value == nil || v.Value.Kind() == 'n' }

func isTrue(v hujson.Value) bool { return v.Value != nil && v.Value.Kind() == 't' }

// nameOf returns the name of a member.
func nameOf(m hujson.ObjectMember) string {
	s, _ := textOf(m.Name)
	return s
}

// valueAt returns the value under a path of keys; ok is false if one of them is missing.
func valueAt(v hujson.Value, keys ...string) (hujson.Value, bool) {
	for _, key := range keys {
		m := memberOf(v, key)
		if m == nil {
			return hujson.Value{}, false
		}
		v = m.Value
	}
	return v, true
}

// memberOf returns the first member of an object under a key, or nil.
func memberOf(v hujson.Value, key string) *hujson.ObjectMember {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	// The pointer leads into the object, so that a caller can change the member in place.
	for i := range o.Members {
		if nameOf(o.Members[i]) == key {
			return &o.Members[i]
		}
	}
	return nil
}

// membersOf returns the members of an object; none if v is no object.
func membersOf(v hujson.Value) []hujson.ObjectMember {
	if o, ok := v.Value.(*hujson.Object); ok {
		return o.Members
	}
	return nil
}

// elementsOf returns the elements of a list; none if v is no list.
func elementsOf(v hujson.Value) []hujson.Value {
	if a, ok := v.Value.(*hujson.Array); ok {
		return a.Elements
	}
	return nil
}

// describesServer reports whether v is the entry of one server and no list of servers, in which these keys would be
// names with objects under them.
func describesServer(v hujson.ValueTrimmed) bool {
	o := hujson.Value{Value: v}
	for _, key := range []string{"command", "url", "type", "enabled"} {
		if m := memberOf(o, key); m != nil && (m.Value.Value.Kind() != '{') {
			return true
		}
	}
	return false
}
