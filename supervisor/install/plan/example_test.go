package plan_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// The choice among several ways says why, and --package takes another.
func ExampleChoose() {
	s, err := plan.Read([]byte(`{"name": "io.github.o/weather", "version": "1.2.0",
		"packages": [{"registryType": "pypi", "identifier": "weather", "version": "1.2.0", "transport": {"type": "stdio"}},
			{"registryType": "npm", "identifier": "weather", "version": "1.2.0", "transport": {"type": "stdio"}}],
		"remotes": [{"type": "streamable-http", "url": "https://weather.example/mcp"}]}`))
	if err != nil {
		panic(err)
	}
	machine := plan.Machine{OS: "linux", Has: func(program string) bool { return program == "npx" }}
	for _, want := range []string{"", "remote"} {
		choice, err := plan.Choose(&s, want, machine)
		if err != nil {
			panic(err)
		}
		result, err := plan.Build(choice.Way, plan.ValueSource{}, machine, nil)
		fmt.Println(choice.Reason, result.Spec.Command, result.Spec.Args, result.Spec.URL, err)
	}
	// Output:
	// npm package weather 1.2.0, the first package whose program (npx) is installed npx [-y weather@1.2.0]  <nil>
	// remote streamable-http https://weather.example/mcp, as asked for  [] https://weather.example/mcp <nil>
}
