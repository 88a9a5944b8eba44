package rawjson_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

func ExampleUnmarshal() {
	var tool struct {
		Name string `json:"name"`
	}
	err := rawjson.Unmarshal([]byte(`{"name": "read", "Name": "write"}`), &tool)
	fmt.Println(tool.Name, err)
	err = rawjson.Unmarshal([]byte(`{"name": "read", "name": "write"}`), &tool)
	fmt.Println(err)
	// Output:
	// read <nil>
	// the name "name" is there twice
}

func ExampleCheckNames() {
	fmt.Println(rawjson.CheckNames([]byte(`{"properties": {"consent": {"type": "boolean", "Type": "string"}}}`)))
	// Output:
	// the names "type" and "Type" differ in case only at "/properties/consent"
}

func ExampleCanonical() {
	form, err := rawjson.Canonical([]byte(`{"run": "npx", "amount": 1000.0, "args": []}`))
	fmt.Println(string(form), err)
	// Output:
	// {"amount":1000,"args":[],"run":"npx"} <nil>
}

func ExampleObject() {
	raw := []byte(`{"id": 7, "result": {"content": []}}`)
	o := rawjson.ObjectAt(raw, 0, 0)
	for o.Next() {
		value := o.Skip()
		fmt.Printf("%s: %s\n", o.Name, value)
	}
	fmt.Println(o.End() == len(raw))
	// Output:
	// id: 7
	// result: {"content": []}
	// true
}
