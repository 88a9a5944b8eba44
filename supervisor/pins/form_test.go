package pins_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

var update = flag.Bool("update", false, "write the golden files")

// formTools are tools whose definitions have what the forms of the file write differently.
func formTools() []messages.Tool {
	yes := true
	var all []messages.Tool
	for name, raw := range map[string]string{
		"plain":   `{"name":"plain","description":"Has none."}`,
		"numbers": `{"name":"numbers","inputSchema":{"type":"object","b":1.0,"a":1e2,"big":9007199254740993}}`,
		"texts":   `{"name":"texts","inputSchema":{"type":"object","\u20ac":"<&>","\ud83d\ude00":"\u2028","\ufb33":1}}`,
		"doubled": `{"name":"doubled","inputSchema":{"type":"object","a":1,"a":2}}`,
		"hints":   `{"name":"hints","annotations":{"readOnlyHint":true,"title":"H","newHint":7}}`,
		"more":    `{"name":"more","_meta":{"z":1,"a":2},"title":"More"}`,
		"large":   `{"name":"large","description":"` + strings.Repeat("long ", 20_000) + `"}`,
	} {
		var t messages.Tool
		t.Raw = []byte(raw)
		var parts struct {
			Name, Title, Description string
			InputSchema              json.RawMessage
		}
		if err := json.Unmarshal(t.Raw, &parts); err != nil {
			panic(err)
		}
		t.Name, t.Title, t.Description, t.InputSchema = parts.Name, parts.Title, parts.Description, parts.InputSchema
		if name == "hints" {
			t.Annotations = &messages.Annotations{Title: "H", ReadOnly: &yes}
		}
		all = append(all, t)
	}
	return all
}

// without returns the tools but one.
func without(all []messages.Tool, name string) (rest []messages.Tool) {
	for _, t := range all {
		if t.Name != name {
			rest = append(rest, t)
		}
	}
	return rest
}

// changed returns the tools with another description of one.
func changed(all []messages.Tool, name, description string) []messages.Tool {
	for _, t := range all {
		if t.Name == name {
			t.Description = description
			t.Raw = []byte(`{"name":"` + name + `","description":"` + description + `"}`)
			return append(without(all, name), t)
		}
	}
	panic(name)
}

// writeForm makes a file with each member that the form has: an approved change, one that waits and was shown, a tool that is gone, and
// one that came later.
func writeForm(t *testing.T, path string) {
	t.Helper()
	s := open(t, path)
	tools := formTools()
	look(s, "a", without(tools, "hints"))
	look(s, "a", tools)
	change := look(s, "a", changed(tools, "more", "More of it."))
	if _, _, err := s.Approve("a", change); err != nil {
		t.Fatal(err)
	}
	look(s, "a", changed(without(tools, "doubled"), "plain", "Has one."))
	if _, err := s.Show("a"); err != nil {
		t.Fatal(err)
	}
	yes := true
	full := messages.Tool{Name: "full", Title: "Full", Description: "Has all.", InputSchema: []byte(`{"type":"object"}`), OutputSchema: []byte(`{}`),
		Annotations: &messages.Annotations{Title: "F", ReadOnly: &yes, Destructive: &yes, Idempotent: &yes, OpenWorld: &yes},
		Raw:         []byte(`{"name":"full","_meta":{}}`)}
	look(s, "b", []messages.Tool{full, {Name: "gone"}})
	look(s, "b", []messages.Tool{full})
	// Who approves has seen that a tool is gone.
	if _, _, err := s.Approve("b", nil); err != nil {
		t.Fatal(err)
	}
	full.Description, full.Raw = "Had all.", []byte(`{"name":"full","_meta":{"a":1}}`)
	look(s, "b", []messages.Tool{full, {Name: "later"}})
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
}

// indented returns a file with a member on each line, for people who read the difference.
func indented(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", " "); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTheFormOfPins holds the file of version 2 as it is. If this test fails, the form has changed: raise storeVersion, so that older
// programs leave the new file alone, keep this golden file as one of the old forms that are read, and add the new one.
func TestTheFormOfPins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pins.json")
	writeForm(t, path)
	got, golden := indented(t, path), filepath.Join("testdata", "pins_v2.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the form has changed:\n%s\nwant\n%s", got, want)
	}
}

// TestOldPinsCount: of the files of both versions, what was approved is known, what waits still waits, and what was shown can be
// approved without being shown again. A file of version 1 is written as one of version 2, in which nothing is missing.
func TestOldPinsCount(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		t.Run(version, func(t *testing.T) {
			golden, err := os.ReadFile(filepath.Join("testdata", "pins_v"+version+".json"))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "pins.json")
			if err := os.WriteFile(path, golden, 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, path)
			now := changed(formTools(), "plain", "Has one.")
			// The tools as they were approved are known, but for the one that waits.
			waiting := look(s, "a", now)
			if len(waiting) != 1 || waiting[0].Tool != "plain" || waiting[0].Old == nil || waiting[0].New == nil ||
				len(s.Shown("a")) != 1 || s.Shown("a")[0].Hash != waiting[0].Hash {
				t.Fatalf("%+v, shown %+v", waiting, s.Shown("a"))
			}
			// The approved change is the newest approval, and the definition before it stays approved.
			if more := look(s, "a", changed(now, "more", "More of it.")); len(more) != 1 {
				t.Errorf("%+v", more)
			}
			// What has really changed is seen, also where only the digits of a number differ. The store still reads the list that it has.
			now = slices.Clone(now)
			for i := range now {
				if now[i].Name == "numbers" {
					now[i].InputSchema = []byte(strings.Replace(string(now[i].InputSchema), "0993", "0992", 1))
					now[i].Raw = []byte(strings.Replace(string(now[i].Raw), "0993", "0992", 1))
				}
			}
			if more := look(s, "a", now); len(more) != 2 || more[0].Tool != "numbers" {
				t.Errorf("%+v", more)
			}
			// A later process approves what was shown.
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			s = open(t, path)
			if approved, unseen, err := s.Approve("a", s.Shown("a")); len(approved) != 1 || len(unseen) != 1 || err != nil {
				t.Errorf("approved %v, not seen %v, %v", approved, unseen, err)
			}
			if text := string(indented(t, path)); !strings.Contains(text, `"version": 2`) || strings.Count(text, `"approved"`) != strings.Count(string(golden), `"approved"`) {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestNewerPins: what a newer mcpvisor wrote is not believed and not overwritten, whatever is done, and the error says what to do.
func TestNewerPins(t *testing.T) {
	for name, text := range map[string]string{
		"format":       `{"version":3,"servers":[]}`,
		"member":       `{"version":2,"hosts":{}}`,
		"inner member": `{"version":2,"servers":{"a":{"t":{"approved":["v2:0"],"until":1}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pins.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := pins.Open(path)
			var newer *files.NewerError
			if !errors.As(err, &newer) || !strings.Contains(err.Error(), "written by a newer mcpvisor") ||
				!strings.Contains(err.Error(), "upgrade mcpvisor; or move "+path+" away") {
				t.Error(err)
			}
			if f := s.Compare("a", [32]byte{}, tool("x", "")); len(f.Unkept) != 1 {
				t.Errorf("%+v", f)
			}
			_, _, _ = s.Approve("a", nil)
			_, _ = s.Show("a")
			_ = s.Forget("a")
			_ = s.Flush()
			if now, err := os.ReadFile(path); err != nil || string(now) != text {
				t.Errorf("overwritten with %s, %v", now, err)
			}
		})
	}
}
