package rawjson

import "testing"

// An edit of one member leaves the bytes of everything else.
func TestEditsLeaveTheRest(t *testing.T) {
	for _, c := range []struct{ object, name, value, with, without string }{
		{`{"a":1,"b": {"x" : 2} }`, "b", `[3]`, `{"a":1,"b": [3] }`, `{"a":1}`},
		{`{"a":1}`, "b", `2`, `{"b":2,"a":1}`, `{"a":1}`},
		{`{}`, "b", `2`, `{"b":2}`, `{}`},
		{`{ }`, "b", `2`, `{"b":2 }`, `{ }`},
		{`{"a":1,"a":2}`, "a", `3`, `{"a":1,"a":3}`, `{}`},
		{`{"a\"b":1,"c":2}`, `a"b`, `3`, `{"a\"b":3,"c":2}`, `{"c":2}`},
		{`{"a": 1 , "c": 2}`, "c", `"x"`, `{"a": 1 , "c": "x"}`, `{"a":1}`},
		{` {"a":1}`, "a", `2`, ` {"a":2}`, ` {"a":1}`},
		{`[1]`, "a", `2`, `[1]`, `[1]`},
		{``, "a", `2`, ``, ``},
	} {
		if got := string(With([]byte(c.object), c.name, []byte(c.value))); got != c.with {
			t.Errorf("%s with %s: %s", c.object, c.name, got)
		}
		if got := string(Without([]byte(c.object), c.name)); got != c.without {
			t.Errorf("%s without %s: %s", c.object, c.name, got)
		}
	}
}
