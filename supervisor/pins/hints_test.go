package pins_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A file of version 1, which named the hints without "Hint", still knows its tools.
func TestHintsOfAnEarlierVersionAreNotChanged(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "before_hints.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pins.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	yes, no := true, false
	tools := []messages.Tool{
		{Name: "read", Description: "Reads.", InputSchema: []byte(`{"type":"object"}`),
			Annotations: &messages.Annotations{Title: "Read", ReadOnly: &yes, Destructive: &no}},
		{Name: "put", Annotations: &messages.Annotations{Idempotent: &yes, OpenWorld: &no}},
		{Name: "plain", Description: "Has none."},
	}
	if changes := look(s, "a", tools); len(changes) > 0 {
		t.Errorf("they look changed: %v", changes)
	}
	tools = append(tools, messages.Tool{Name: "new", Annotations: &messages.Annotations{ReadOnly: &yes}})
	look(s, "a", tools)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(now), `"new":{"approved"`) || !strings.Contains(string(now), `{"readOnlyHint":true}`) ||
		strings.Contains(string(now), `"readOnly"`) {
		t.Errorf("%v: %s", err, now)
	}

	// What really changes is told with the names of the specification.
	tools[0].Annotations = &messages.Annotations{Title: "Read", ReadOnly: &no, Destructive: &no}
	changes := look(s, "a", tools)
	if len(changes) != 1 || !strings.Contains(changes[0].Text(), "- readOnlyHint: true\n") {
		t.Fatalf("%v", changes)
	}
	shown, err := json.Marshal(changes[0])
	if err != nil || !strings.Contains(string(shown), `"old":{"description":"Reads.","inputSchema":{"type":"object"},"annotations":{"title":"Read","readOnlyHint":true,`) {
		t.Errorf("%v: %s", err, shown)
	}
}
