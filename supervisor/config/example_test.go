package config_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

func Example() {
	user := config.Parse(config.File{Path: "user.json", Scope: messages.ScopeUser, Data: []byte(`{
		"mcpServers": {"db": {"command": "db-server"}}
	}`)})
	project := config.Parse(config.File{Path: ".mcp.json", Scope: messages.ScopeProject, Data: []byte(`{
		"servers": {
			"db": {"command": "npx", "args": ["-y", "db-server@${DB_VERSION:-latest}"]},
			"api": {"url": "https://api.example.com/mcp", "headers": {"X-Key": "${API_KEY}"}}, // needs a key
		},
	}`)})
	set := config.Merge([]config.Parsed{user, project}, config.Context{
		Lookup: func(name string) (string, bool) { return "", false }, // os.LookupEnv in a program
	})
	fmt.Println(set.Specs["db"].Command, set.Specs["db"].Args)
	for _, s := range set.Shadowed {
		fmt.Printf("%s of %s is hidden: %s\n", s.Server, s.Loser, s.Reason)
	}
	for _, p := range set.Problems {
		fmt.Println(p)
	}
	// Output:
	// npx [-y db-server@latest]
	// db of user.json is hidden: the project scope wins over the user scope
	// .mcp.json:4:71: server "api": headers.X-Key: variable "API_KEY" is not set; set it, or write ${API_KEY:-default}
}

func ExampleParseFlag() {
	name, e, err := config.ParseFlag(`files=npx -y @modelcontextprotocol/server-filesystem "my files"`)
	fmt.Printf("%s %s %q %v\n", name, e.Spec.Command, e.Spec.Args, err)
	_, _, err = config.ParseFlag("https://example.com/mcp")
	fmt.Println(err)
	// Output:
	// files npx ["-y" "@modelcontextprotocol/server-filesystem" "my files"] <nil>
	// --mcp-server: there is no = in the value; write NAME=URL, NAME="COMMAND ARGS…" or NAME={json}
}

func ExampleCompare() {
	before := map[string]messages.Spec{"a": {Command: "x"}, "b": {Command: "x"}, "d": {Command: "x"}}
	after := map[string]messages.Spec{
		"b": {Command: "x", Args: []string{"-v"}}, "c": {URL: "https://example.com/mcp"}, "d": {Command: "x", Disabled: true},
	}
	c := config.Compare(before, after)
	fmt.Println(c.Added, c.Removed, c.Replaced, c.Adjusted)
	// Output: [c] [a] [b] [d]
}

// An organisation allows one command and the servers of its own hosts.
func ExamplePolicy() {
	p := config.Policy{
		AllowCommands: []string{"npx -y @acme/*"}, AllowURLs: []string{"https://*.acme.example"}, Source: "/etc/mcp.json",
	}
	fmt.Println(p.Refuses(messages.Spec{Command: "npx", Args: []string{"-y", "@acme/files"}}) == "")
	fmt.Println(p.Refuses(messages.Spec{Command: "curl"}))
	fmt.Println(p.Refuses(messages.Spec{URL: "https://acme.example.evil.test/mcp"}))
	// Output:
	// true
	// allowCommands of /etc/mcp.json does not allow the command "curl"; to allow it: "allowCommands": ["curl"]
	// allowURLs of /etc/mcp.json does not allow "acme.example.evil.test"; to allow it: "allowURLs": ["https://acme.example.evil.test"]
}
