package edit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
)

// ExamplePut adds a member behind a comment: the comma goes before the comment, and the rest stays as it was.
func ExamplePut() {
	text := []byte("{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"} // first\n  }\n}\n")
	text, err := edit.Put(text, []string{"mcpServers", "b"}, json.RawMessage(`{"url": "https://example.com"}`))
	fmt.Print(string(text), err)
	// Output:
	// {
	//   // mine
	//   "mcpServers": {
	//     "a": {"command": "x"}, // first
	//     "b": {
	//       "url": "https://example.com"
	//     }
	//   }
	// }
	// <nil>
}

// ExampleRemove removes the last member with the comment of its line; the comma before it goes as well.
func ExampleRemove() {
	text, err := edit.Remove([]byte("{\n\t\"a\": 1, // one\n\t\"b\": 2 // two\n}\n"), []string{"b"})
	fmt.Print(string(text), err)
	// Output:
	// {
	// 	"a": 1 // one
	// }
	// <nil>
}

// TestPut puts a member into texts of many layouts; each row is a text, a path, a value and the result.
func TestPut(t *testing.T) {
	for _, row := range []struct{ what, text, path, value, want string }{
		{"nothing", "", "s.a", `1`, "{\n  \"s\": {\n    \"a\": 1\n  }\n}\n"},
		{"a byte order mark", "\ufeff", "a", `1`, "\ufeff{\n  \"a\": 1\n}\n"},
		{"comments", "// one\r\n/* two */", "a", `1`, "// one\r\n/* two */\r\n{\r\n  \"a\": 1\r\n}\r\n"},
		{"null", "// one\nnull // two\n", "a", `1`, "// one\n{\n  \"a\": 1\n} // two\n"},
		{"null in the place of an object", "{\n  \"s\": null, // none\n  \"t\": 2\n}\n", "s.a", `1`,
			"{\n  \"s\": {\n    \"a\": 1\n  }, // none\n  \"t\": 2\n}\n"},
		{"null in the place of two objects", "{\n  \"r\": null\n}\n", "r.s.a", `1`, "{\n  \"r\": {\n    \"s\": {\n      \"a\": 1\n    }\n  }\n}\n"},
		{"an empty object", "{}", "a", `1`, "{\n  \"a\": 1\n}"},
		{"an empty object over two lines", "{\n}\n", "a", `1`, "{\n  \"a\": 1\n}\n"},
		{"a comment in an empty object", "{\n  // none\n}\n", "a", `1`, "{\n  // none\n  \"a\": 1\n}\n"},
		{"an empty object in a line", "{\n    \"s\": {}\n}", "s.a", `{"x":[1]}`,
			"{\n    \"s\": {\n        \"a\": {\n            \"x\": [\n                1\n            ]\n        }\n    }\n}"},
		{"all on one line", `{"s": {"a": 1}}`, "s.b", `{"x":"y, z: w"}`, `{"s": {"a": 1, "b": {"x": "y, z: w"}}}`},
		{"on one line with a trailing comma", `{"a": 1,}`, "b", `2`, `{"a": 1, "b": 2,}`},
		{"a trailing comma", "{\n  \"a\": 1,\n}", "b", `2`, "{\n  \"a\": 1,\n  \"b\": 2,\n}"},
		{"a trailing comma and a comment", "{\n  \"a\": 1, // one\n  /* end */\n}", "b", `2`,
			"{\n  \"a\": 1, // one\n  /* end */\n  \"b\": 2,\n}"},
		{"tabs", "{\n\t\"a\": 1\n}", "b", `{"c":2}`, "{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"c\": 2\n\t}\n}"},
		{"line ends of Windows", "{\r\n  \"a\": 1\r\n}\r\n", "b", `{"c":2}`,
			"{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": 2\r\n  }\r\n}\r\n"},
		{"a brace behind the last value", "{\n  \"a\": 1}", "b", `2`, "{\n  \"a\": 1,\n  \"b\": 2\n}"},
		{"a value that is there", "{\n  \"a\": {\n    \"x\": 1\n  }, // keep\n  \"b\": 2\n}", "a", `{"y":2}`,
			"{\n  \"a\": {\n    \"y\": 2\n  }, // keep\n  \"b\": 2\n}"},
		{"a value on one line", "{\n  \"a\": {\"x\": 1},\n  \"b\": 2\n}", "a", `{"y":2}`, "{\n  \"a\": {\"y\": 2},\n  \"b\": 2\n}"},
		{"a key that needs escapes", "{}", `a"<é`, `1`, "{\n  \"a\\\"<é\": 1\n}"},
	} {
		got, err := edit.Put([]byte(row.text), strings.Split(row.path, "."), json.RawMessage(row.value))
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %q, %v\nwant %q", row.what, got, err, row.want)
		}
	}
}

// TestRemove removes a member from texts of many layouts.
func TestRemove(t *testing.T) {
	for _, row := range []struct{ what, text, path, want string }{
		{"the only one", "{\n  \"a\": 1\n}\n", "a", "{}\n"},
		{"the only one, inside", "{\n  \"s\": {\n    \"a\": 1,\n  }\n}", "s.a", "{\n  \"s\": {}\n}"},
		{"the only one under a comment", "{\n  // about a\n  \"a\": 1\n}\n", "a", "{\n  // about a\n}\n"},
		{"the only one on one line", `{"a": 1}`, "a", `{}`},
		{"the first", "{\n  \"a\": 1,\n  \"b\": 2\n}", "a", "{\n  \"b\": 2\n}"},
		{"the last", "{\n  \"a\": 1,\n  \"b\": 2\n}", "b", "{\n  \"a\": 1\n}"},
		{"the last before a trailing comma", "{\n  \"a\": 1,\n  \"b\": 2,\n}", "b", "{\n  \"a\": 1,\n}"},
		{"one of a line", `{"a": 1, "b": 2, "c": 3}`, "b", `{"a": 1, "c": 3}`},
		{"the last of a line", `{"a": 1, "b": 2}`, "b", `{"a": 1}`},
		{"with a comment of its line", "{\n  \"a\": 1, // one\n  \"b\": 2 // two\n}", "a", "{\n  \"b\": 2 // two\n}"},
		{"under a comment", "{\n  // about a\n  \"a\": 1,\n  \"b\": 2\n}", "a", "{\n  // about a\n  \"b\": 2\n}"},
		{"a comment before the comma", "{\n  \"a\": 1 /* x */,\n  \"b\": 2\n}", "a", "{\n  /* x */\n  \"b\": 2\n}"},
		{"line ends of Windows", "{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}", "a", "{\r\n  \"b\": 2\r\n}"},
		{"inside", "{\n  \"s\": {\n    \"a\": {\n      \"x\": 1\n    },\n    \"b\": 2\n  }\n}", "s.a",
			"{\n  \"s\": {\n    \"b\": 2\n  }\n}"},
	} {
		got, err := edit.Remove([]byte(row.text), strings.Split(row.path, "."))
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %q, %v\nwant %q", row.what, got, err, row.want)
		}
	}
}

// TestRefused checks that a text which cannot be edited without guessing is refused, with the reason and without any value of
// the text, which may be a secret.
func TestRefused(t *testing.T) {
	for _, row := range []struct {
		text, path string
		want       error
	}{
		{"{", "a", edit.ErrNotJSON}, {"[]", "a", edit.ErrNotObject}, {`{"a": "canary"}`, "a.b", edit.ErrNotObject},
		{`{"a": 1, "a": 2}`, "a", edit.ErrTwice}, {`{"a": canary}`, "a", edit.ErrNotJSON},
		{strings.Repeat("[", 1<<20), "a", edit.ErrNotJSON},
	} {
		_, err := edit.Put([]byte(row.text), strings.Split(row.path, "."), json.RawMessage("1"))
		if !errors.Is(err, row.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.40q: %v", row.text, err)
		}
	}
	if _, err := edit.Remove([]byte("{}"), []string{"a"}); !errors.Is(err, edit.ErrMissing) {
		t.Error(err)
	}
	if _, err := edit.Remove([]byte(`{"a": null}`), []string{"a", "b"}); !errors.Is(err, edit.ErrMissing) {
		t.Error(err)
	}
	if _, err := edit.Put([]byte("{}"), []string{"a"}, json.RawMessage("{")); !errors.Is(err, edit.ErrNotJSON) {
		t.Error(err)
	}
}

// meaning returns the values of a text without its comments; ok is false if it is no JSON.
func meaning(text []byte) (v any, ok bool) {
	root, err := hujson.Parse(append(bytes.TrimPrefix(text, []byte("\ufeff")), '\n'))
	if err != nil {
		return nil, false
	}
	root.Standardize()
	err = json.Unmarshal(root.Pack(), &v)
	return v, err == nil
}

// FuzzEdit puts a member into any text and removes it again. In between the text says what it said before, and the member; a
// new member removes no byte of the old text.
func FuzzEdit(f *testing.F) {
	for _, s := range []string{
		"{}", `{"a": 1}`, "{\n\t\"a\": {\"b\": 2},\n}", "{ // c\n}", "\ufeff{\"a\": {}}", "{\"a\":1/*x*/,/*y*/}", "{\"a\"\n:\n1\n,\n}",
		"{\r\n\"a\": [1,\r\n2], // x\r\n\"b\": {}}", "// top\n{\"s\": {\"a\": 1 // one\n}}\n// end",
	} {
		f.Add([]byte(s), "s", "new")
	}
	f.Add([]byte("{}"), "s", strings.Repeat("{", 2000)) // what was put in can be taken out again
	f.Fuzz(func(t *testing.T, text []byte, outer, inner string) {
		before, ok := meaning(text)
		path := []string{outer, inner}
		put, err := edit.Put(text, path, json.RawMessage(`{"x": ["y"]}`))
		if err != nil {
			return
		}
		after, fine := meaning(put)
		if !fine {
			t.Fatalf("%q became %q, which is no JSON", text, put)
		}
		if ok && !reflect.DeepEqual(expected(before, path), after) {
			t.Fatalf("%q became %q", text, put)
		}
		if ok && !member(before, path) && !spliced(text, put) {
			t.Fatalf("%q lost something in %q", text, put)
		}
		gone, err := edit.Remove(put, path)
		if err != nil {
			t.Fatalf("%q cannot be removed from %q: %v", path, put, err)
		}
		if last, fine := meaning(gone); !fine || member(last, path) {
			t.Fatalf("%q became %q, then %q", text, put, gone)
		}
	})
}

// spliced reports whether now is old with bytes inserted and none removed, white space at both ends aside.
func spliced(old, now []byte) bool {
	old = bytes.TrimSpace(old)
	for _, c := range now {
		if len(old) > 0 && old[0] == c {
			old = old[1:]
		}
	}
	return len(old) == 0
}

// expected returns the values of before with the member at the path.
func expected(before any, path []string) any {
	m, _ := before.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	inner, _ := m[path[0]].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
	}
	inner[path[1]] = map[string]any{"x": []any{"y"}}
	m[path[0]] = inner
	return m
}

// member reports whether the values have a member at the path.
func member(v any, path []string) bool {
	for _, key := range path {
		m, _ := v.(map[string]any)
		var ok bool
		if v, ok = m[key]; !ok {
			return false
		}
	}
	return true
}
