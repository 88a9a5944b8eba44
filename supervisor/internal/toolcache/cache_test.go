package toolcache

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/formtest"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestTheFormOfAList holds a list of form 3. If this test fails, another program would take what is kept for something else: raise
// cachedForm. The lists are then asked for again, and nothing is lost.
func TestTheFormOfAList(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "tools3.json"))
	if err != nil {
		t.Fatal(err)
	}
	formtest.Check(t, cachedTools{}, golden)
	var list cachedTools
	if err := json.Unmarshal(golden, &list); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(list); err != nil || !bytes.Equal(got, bytes.TrimSpace(golden)) {
		t.Errorf("it is written as\n%s\nand not as\n%s (%v)", got, golden, err)
	}
}

// TestFormsDoNotMeet: programs of different forms share a folder. Each finds its own lists, and leaves those of the other. Half a file
// counts as none.
func TestFormsDoNotMeet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tools")
	open := func(form int) *Cache {
		c := New(dir, false, nil, zap.NewNop(), func(string, *messages.Spec) (string, bool) { return "me", true })
		c.form = form
		return c
	}
	spec := &messages.Spec{Command: "server"}
	names := func(c *Cache) (all string) {
		if list := c.LoadToolList("a", spec); list != nil {
			for _, tool := range list.Tools {
				all += tool.Name
			}
		}
		return all
	}
	save := func(c *Cache, name string) {
		c.SaveToolList("a", spec, &session.ToolList{Tools: []messages.Tool{{Name: name}}})
		// The list is written in the background.
		for end := time.Now().Add(time.Minute); names(c) != name && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	today, newer := open(cachedForm), open(cachedForm+1)
	save(newer, "new")
	if got := names(today); got != "" {
		t.Errorf("this program reads the list of a newer one: %s", got)
	}
	save(today, "old")
	if got := names(newer); got != "new" {
		t.Errorf("the newer one finds %q", got)
	}
	found, err := filepath.Glob(filepath.Join(dir, "list-*.json"))
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	for _, path := range found {
		if err := os.Truncate(path, 80); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(today); got != "" {
		t.Errorf("half a list has %s", got)
	}
}

// TestADefinitionIsThatOfItsTool: what is kept stands in a folder of the user's, and must not become another message.
func TestADefinitionIsThatOfItsTool(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{`{"name":"a","x":[1, 2]}`, `{"name":"a","x":[1, 2]}`},
		{"{\"name\":\"a\"\n}", ""},
		{`{"name":"b"}`, ""},
		{`{"x":1}`, ""},
		{`null`, ""},
		{``, ""},
		{`[{"name":"a"}]`, ""},
		{`{"name":"a"}{"id":1}`, ""},
	} {
		if got := string(ownDefinition(c.raw, "a")); got != c.want {
			t.Errorf("%s: %q", c.raw, got)
		}
	}
}
