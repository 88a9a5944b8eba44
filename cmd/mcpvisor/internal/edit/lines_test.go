package edit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
)

// ExamplePutTOML adds a table at the end, where it cannot change the meaning of the keys before it.
func ExamplePutTOML() {
	text := []byte("model = \"o\"\n\n[mcp_servers.a] # mine\ncommand = \"x\"")
	text, err := edit.PutTOML(text, []string{"mcp_servers", "b"}, json.RawMessage(`{"command": "y", "args": ["1","2"]}`))
	fmt.Print(string(text), err)
	// Output:
	// model = "o"
	//
	// [mcp_servers.a] # mine
	// command = "x"
	//
	// [mcp_servers.b]
	// command = "y"
	// args = ["1", "2"]
	// <nil>
}

// ExamplePutYAML adds an entry behind those of its section.
func ExamplePutYAML() {
	text := []byte("extensions:\n  a:\n    cmd: x\n# the model\nGOOSE_MODEL: o\n")
	text, err := edit.PutYAML(text, "extensions", "b", json.RawMessage(`{"cmd": "y", "enabled": true}`))
	fmt.Print(string(text), err)
	// Output:
	// extensions:
	//   a:
	//     cmd: x
	//   b:
	//     cmd: "y"
	//     enabled: true
	// # the model
	// GOOSE_MODEL: o
	// <nil>
}

// entry is the value that the rows below put.
const entry = `{"c":"x"}`

// TestPutTOML puts the table s.a; an empty want means that the text is refused.
func TestPutTOML(t *testing.T) {
	for _, row := range []struct{ what, text, want string }{
		{"nothing", "", "[s.a]\nc = \"x\"\n"},
		{"no line end", "k = 1", "k = 1\n\n[s.a]\nc = \"x\"\n"},
		{"lines of Windows and a byte order mark", "\ufeffk = 1\r\n", "\ufeffk = 1\r\n\r\n[s.a]\r\nc = \"x\"\r\n"},
		{"one that is there", "[s.a]\nd = 1\n[s.a.e]\nf = 1\n\n# b\n[s.b]\n", "\n# b\n[s.b]\n\n[s.a]\nc = \"x\"\n"},
		{"dotted keys above", "s.b.c = 1\n", "s.b.c = 1\n\n[s.a]\nc = \"x\"\n"},
		{"a table on one line", "s = {b = {c = 1}}\n", ""},
		{"no table", "s = 1\n", ""},
		{"a list of tables", "[[s]]\nb = 1\n", ""},
		{"no TOML", "[s\n", ""},
		{"JSON", `{"s": 1}`, ""},
	} {
		got, err := edit.PutTOML([]byte(row.text), []string{"s", "a"}, json.RawMessage(entry))
		if string(got) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", row.what, got, err)
		}
	}
	if got, err := edit.PutTOML(nil, []string{"s", "a b\n"}, json.RawMessage(entry)); string(got) != "[s.\"a b\\n\"]\nc = \"x\"\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := edit.PutTOML(nil, []string{"s", "a"}, json.RawMessage(`{"a": {"B": "c", "D": "e"}}`)); string(got) != "[s.a]\na = {B = \"c\", D = \"e\"}\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, value := range []string{`1`, `{`, `{"a b": 1}`, `{"a": null}`, `{"a": {"b": {}}}`, "{\"a\": \"\x7f\"}"} {
		if got, err := edit.PutTOML(nil, []string{"s", "a"}, json.RawMessage(value)); err == nil {
			t.Errorf("%s: %q", value, got)
		}
	}
}

// TestRemoveTOML removes s.a; an empty want means that the text is refused.
func TestRemoveTOML(t *testing.T) {
	for _, row := range []struct{ what, text, want string }{
		{"between others", "[s.b]\nc = 1\n\n[s.a]\nc = 2 # two\n\n# of d\n[d]\n", "[s.b]\nc = 1\n\n# of d\n[d]\n"},
		{"with its tables", "k = 1\n[s.a]\nc = 2\n# inside\n[s.a.e]\nf = '''\n# text\n'''\n[d]\n[s.a.g]\nh = [\n 1,\n]\n", "k = 1\n[d]\n"},
		{"a dotted key", "s.a.c = 1\nk = 1\n", "k = 1\n"},
		{"in its parent", "[s]\na = {c = 1}\nb = {c = 1}\n", "[s]\nb = {c = 1}\n"},
		{"a quoted key", "[s.\"a\"]\nc = 1\n", "\n"},
		{"missing", "[s.b]\nc = 1\n", ""},
		{"on one line with another", "s = {a = {c = 1}, b = {c = 1}}\n", ""},
	} {
		got, err := edit.RemoveTOML([]byte(row.text), []string{"s", "a"})
		if string(got) != row.want && !(row.want == "\n" && len(got) == 0) || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", row.what, got, err)
		}
	}
}

// TestPutYAML puts the entry a of the section s; an empty want means that the text is refused.
func TestPutYAML(t *testing.T) {
	const added = "  a:\n    c: \"x\"\n"
	for _, row := range []struct{ what, text, want string }{
		{"nothing", "", "s:\n" + added},
		{"a comment alone", "# mine\n", "# mine\ns:\n" + added},
		{"no section, no line end", "k: 1", "k: 1\ns:\n" + added},
		{"an empty section", "s: {} # none\nk: 1\n", "s: # none\n" + added + "k: 1\n"},
		{"null", "s:\nk: 1\n", "s:\n" + added + "k: 1\n"},
		{"four spaces", "s:\n    b:\n        c: |\n          y\n\n          z\n\n# k\nk: 1\n",
			"s:\n    b:\n        c: |\n          y\n\n          z\n    a:\n        c: \"x\"\n\n# k\nk: 1\n"},
		{"lines of Windows and a byte order mark", "\ufeffs:\r\n  b: 1\r\n", "\ufeffs:\r\n  b: 1\r\n  a:\r\n    c: \"x\"\r\n"},
		{"one that is there", "s:\n  a:\n    d: 1\n    # in it\n\n  # of b\n  b: 1\n", "s:\n\n  # of b\n  b: 1\n" + added},
		{"a comment at the end", "s:\n  b: 1\n  # nothing more\n", "s:\n  b: 1\n  # nothing more\n" + added},
		{"a section on one line", "s: {b: 1}\n", ""},
		{"a list", "s:\n- b\n", ""},
		{"an anchor", "s: &x\n  b: 1\n", ""},
		{"text", "s: b\n", ""},
		{"no map", "- s\n", ""},
		{"no YAML", "s: [\n", ""},
		{"an end of the document", "k: 1\n...\n", ""},
	} {
		got, err := edit.PutYAML([]byte(row.text), "s", "a", json.RawMessage(entry))
		if string(got) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", row.what, got, err)
		}
	}
}

// TestRemoveYAML removes the entry a of the section s; an empty want means that the text is refused.
func TestRemoveYAML(t *testing.T) {
	for _, row := range []struct{ what, text, want string }{
		{"between others", "s:\n  b: 1\n  a:\n    c: 2\n\n    d: 3\n\n  # of e\n  e: 1\nk: 1\n", "s:\n  b: 1\n\n  # of e\n  e: 1\nk: 1\n"},
		{"the only one", "s: # all\n  a:\n    c: 2\nk: 1\n", "s: {} # all\nk: 1\n"},
		{"quoted, without a line end", "s:\n  b: 1\n  \"a\": {c: 1}", "s:\n  b: 1\n"},
		{"missing", "s:\n  b: 1\n", ""},
		{"on one line", "s: {a: 1, b: 2}\n", ""},
		{"an anchor that another uses", "s:\n  a: &x\n    c: 1\n  b: *x\n", ""},
	} {
		got, err := edit.RemoveYAML([]byte(row.text), "s", "a")
		if string(got) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", row.what, got, err)
		}
	}
}

// lineEdits are the edits of TOML and YAML as the fuzz tests try them.
var lineEdits = map[string]struct {
	put    func(text []byte) ([]byte, error)
	remove func(text []byte) ([]byte, error)
}{
	"toml": {
		func(text []byte) ([]byte, error) {
			return edit.PutTOML(text, []string{"s", "a"}, json.RawMessage(entry))
		},
		func(text []byte) ([]byte, error) { return edit.RemoveTOML(text, []string{"s", "a"}) },
	},
	"yaml": {
		func(text []byte) ([]byte, error) { return edit.PutYAML(text, "s", "a", json.RawMessage(entry)) },
		func(text []byte) ([]byte, error) { return edit.RemoveYAML(text, "s", "a") },
	},
}

// fuzzLines checks that an edit ends without a panic, and that removing what was put leaves a text in which nothing is left of it.
func fuzzLines(f *testing.F, kind string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 || bytes.Count(text, []byte("*")) > 8 {
			return // aliases are bounded by the reader of the file
		}
		both := lineEdits[kind]
		put, err := both.put(text)
		if err != nil {
			return
		}
		// A text with tags or anchors at strange places is refused; whatever is written is as it should be.
		if second, err := both.put(put); err != nil && !errors.Is(err, edit.ErrLayout) {
			t.Fatalf("%q: a second time: %q, %v", put, second, err)
		}
		removed, err := both.remove(put)
		if errors.Is(err, edit.ErrLayout) {
			return
		} else if err != nil {
			t.Fatalf("%q: %v", put, err)
		}
		if _, err := both.remove(removed); !errors.Is(err, edit.ErrMissing) {
			t.Fatalf("%q: it is still there: %v", removed, err)
		}
	})
}

func FuzzTOML(f *testing.F) {
	fuzzLines(f, "toml", "", "k = 1", "[s.a]\nb = 1\n", "s.a.b = 1\n", "[[s.b]]\n", "x = '''\n[s.a]\n'''\n", "[s]\na = {c = 1}\n[d]")
}

func FuzzYAML(f *testing.F) {
	fuzzLines(f, "yaml", "", "k: 1", "s:\n  a: 1\n", "s: {}\n", "s:\n  b: |+\n    x\n\n\n", "s:\n b:\n  - 1\n", "x: |\n  y\ns:\n  a: b\n", "s:\n !0\n b: 1\n")
}
