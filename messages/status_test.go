package messages_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// ExampleStatus shows the JSON form. Its first seven fields are Claude Code's.
func ExampleStatus() {
	yes := true
	b, err := json.MarshalIndent(messages.Status{
		Name: "github", Status: messages.Connected, ServerInfo: &messages.ServerInfo{Name: "github-mcp", Version: "1.2.0"},
		Config: &messages.Spec{Command: "github-mcp", Env: map[string]string{"TOKEN": "[redacted]"}},
		Scope:  messages.ScopeProject,
		Tools: []messages.ToolInfo{{
			Name: "search", Description: "Search code", Annotations: &messages.Annotations{ReadOnly: &yes},
		}},
		Transport: messages.Stdio, ProtocolVersion: "2025-11-25", Epoch: 3, PID: 4711,
	}, "", "  ")
	fmt.Println(string(b), err)
	// Output:
	// {
	//   "name": "github",
	//   "status": "connected",
	//   "serverInfo": {
	//     "name": "github-mcp",
	//     "version": "1.2.0"
	//   },
	//   "config": {
	//     "command": "github-mcp",
	//     "env": {
	//       "TOKEN": "[redacted]"
	//     }
	//   },
	//   "scope": "project",
	//   "tools": [
	//     {
	//       "name": "search",
	//       "description": "Search code",
	//       "annotations": {
	//         "readOnly": true
	//       }
	//     }
	//   ],
	//   "transport": "stdio",
	//   "protocolVersion": "2025-11-25",
	//   "attempts": 0,
	//   "restarts": 0,
	//   "epoch": 3,
	//   "pid": 4711
	// } <nil>
}

// The names of the fields that other programs already read, in their order.
func TestStatusBeginsWithTheKnownFields(t *testing.T) {
	seeds.Shows(t, "000.3.status-json")
	want := []string{"name", "status", "serverInfo", "error", "config", "scope", "tools"}
	typ := reflect.TypeFor[messages.Status]()
	for i, w := range want {
		if got, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); got != w {
			t.Errorf("field %d is %q, want %q", i, got, w)
		}
	}
}

func TestStatusRoundTrip(t *testing.T) {
	in := `{"name":"a","status":"failed","error":"exited","attempts":2,"restarts":1,"nextAttempt":"2026-01-02T03:04:05Z"` +
		`,"step":"","class":"exited","retry":"retry","quarantined":[{"name":"t","reason":"no schema"}],` +
		`"challenge":{"scheme":"Bearer","scope":"repo"},"since":"2026-01-02T03:04:00Z"}`
	var s, second messages.Status
	if err := json.Unmarshal([]byte(in), &s); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &second); err != nil || !reflect.DeepEqual(s, second) {
		t.Errorf("%s is read as %+v, %v", b, second, err)
	}
	if got, want := string(b), strings.Replace(in, `"step":"",`, "", 1); got != want {
		t.Errorf("written as\n%s, want\n%s", got, want)
	}
}

// Earlier versions have named hints without "Hint", in files and over the control socket.
func TestAnnotationsOfAnEarlierVersion(t *testing.T) {
	for text, want := range map[string]string{
		`{"title":"x","readOnly":true,"openWorld":false}`: `{"title":"x","readOnlyHint":true,"openWorldHint":false}`,
		`{"readOnlyHint":false,"readOnly":true}`:          `{"readOnlyHint":false}`,
		`{"destructiveHint":true,"idempotent":true}`:      `{"destructiveHint":true,"idempotentHint":true}`,
		`{}`: `{}`,
	} {
		var a messages.Annotations
		err := json.Unmarshal([]byte(text), &a)
		if got, _ := json.Marshal(a); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
