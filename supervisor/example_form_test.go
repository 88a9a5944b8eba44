package supervisor_test

import (
	"encoding/json"
	"fmt"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A program that shows forms fills in what the server proposes, shows the whole, and sends what was shown.
func ExampleFillDefaults() {
	asked := supervisor.ElicitRequest{Schema: json.RawMessage(`{
		"type": "object",
		"properties": {"name": {"type": "string"}, "rooms": {"type": "integer", "default": 2}}
	}`)}
	content, err := supervisor.FillDefaults(asked, json.RawMessage(`{"name":"Ann"}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(content))
	// Output: {"name":"Ann","rooms":2}
}
