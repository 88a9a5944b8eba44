package files_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/files"
)

// TestFormat: what is read, what counts as newer, and what as damaged. A number that is too high counts before anything else, because
// the rest of a newer form may look damaged to this program.
func TestFormat(t *testing.T) {
	form := files.Format{What: "the store of pebbles", Oldest: 1, Newest: 2}
	for _, c := range []struct {
		name, text string
		version    int
		newer, bad string
	}{
		{name: "the newest", text: ` {"version":2,"all":{"a":{"size":3}}}`, version: 2},
		{name: "the oldest, and the number last", text: `{"all":{"a":{"size":3}},"version":1}`, version: 1},
		{name: "a newer one", text: `{"version":3}`, version: 3,
			newer: "the store of pebbles was written by a newer mcpvisor (format 3; this one reads up to 2)"},
		{name: "a newer one of another shape", text: `{"version":3,"all":[]}`, version: 3, newer: "(format 3;"},
		{name: "half of a newer one", text: `{"version":3,"all":{"a`, version: 3, newer: "(format 3;"},
		{name: "a new member", text: `{"version":2,"more":1}`, version: 2, newer: `this one does not know "/more" in it`},
		{name: "a new member inside", text: `{"version":2,"all":{"a":{"size":3,"color":"red"}}}`, version: 2, newer: `"/all/a/color"`},
		{name: "half", text: `{"version":2,"all":{"a`, version: 2, bad: "is damaged"},
		{name: "another shape", text: `{"version":2,"all":[]}`, version: 2, bad: `is damaged: an array cannot be a map`},
		{name: "a name twice", text: `{"version":2,"all":{},"all":{}}`, version: 2, bad: "there twice"},
		{name: "the number twice", text: `{"version":2,"version":3}`, version: 2, bad: "there twice"},
		{name: "too old", text: `{"version":0}`, bad: "none that any mcpvisor has written"},
		{name: "no number", text: `{"all":{}}`, bad: "it has no version"},
		{name: "a text for a number", text: `{"version":"2"}`, bad: "none that any mcpvisor has written"},
		{name: "another case", text: `{"Version":2}`, bad: "it has no version"},
		{name: "nothing", text: ` `, bad: "no JSON object"},
		{name: "an array", text: `[2]`, bad: "no JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v struct {
				Version int `json:"version"`
				All     map[string]struct {
					Size int `json:"size"`
				} `json:"all"`
			}
			version, err := form.Unmarshal([]byte(c.text), &v)
			var newer *files.NewerError
			switch {
			case version != c.version:
				t.Errorf("version %d, want %d", version, c.version)
			case c.newer != "":
				if !errors.As(err, &newer) || !strings.Contains(err.Error(), c.newer) || errors.Is(err, files.ErrDamaged) {
					t.Errorf("%v", err)
				}
				if fix := files.FixFor(err, "/f"); fix != "upgrade mcpvisor; or move /f away, and keep it for the newer one" {
					t.Error(fix)
				}
			case c.bad != "":
				if !errors.Is(err, files.ErrDamaged) || !strings.Contains(err.Error(), c.bad) || errors.As(err, &newer) {
					t.Errorf("%v", err)
				}
				if fix := files.FixFor(err, "/f"); fix != "mend or delete /f" {
					t.Error(fix)
				}
			case err != nil || v.Version != version || v.All["a"].Size != 3:
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}
