package install_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// A server is found by a short name, told what it needs, and becomes a spec.
func ExampleRegistry_Find() {
	registry := httptest.NewServer(&fakeRegistry{records: []record{{document: `{"name": "io.github.o/weather-mcp-server", "version": "1.2.0",
		"packages": [{"registryType": "npm", "identifier": "@o/weather", "version": "1.2.0", "transport": {"type": "stdio"},
			"environmentVariables": [{"name": "WEATHER_KEY", "isRequired": true, "isSecret": true}]}]}`}}})
	defer registry.Close()

	r, err := install.New(install.Options{Base: registry.URL})
	if err != nil {
		panic(err)
	}
	entry, err := r.Find(context.Background(), "weather")
	if err != nil {
		panic(err)
	}
	_, err = r.Prepare(context.Background(), entry, install.Request{})
	fmt.Println(err)

	made, err := r.Prepare(context.Background(), entry, install.Request{ValueSource: plan.ValueSource{
		GivenValues: plan.GivenValues{Env: map[string]string{"WEATHER_KEY": "${MY_WEATHER_KEY}"}},
	}})
	fmt.Println(made.Name, made.Spec.Command, made.Spec.Args, made.Spec.Env, err)
	// Output:
	// the environment variable WEATHER_KEY is required; give it with --env WEATHER_KEY=…
	// weather npx [-y @o/weather@1.2.0] map[WEATHER_KEY:${MY_WEATHER_KEY}] <nil>
}
