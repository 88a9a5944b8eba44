package scenario_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func ExampleParse() {
	_, err := scenario.Parse("bad.yaml", []byte(`name: bad
servers:
  - name: web
    count: 3
faults:
  - fault: crsh
    on: web
    at: 5
`))
	fmt.Println(err)
	// Output:
	// bad.yaml:8:9: "5" is no duration; write a number with its unit, such as 30s or 2m
}

func ExampleScenario_Plan() {
	s, err := scenario.Parse("bad.yaml", []byte(`name: bad
duration: 1m
servers:
  - name: web
    count: 10
faults:
  - fault: crash # two of them, others each time
    on: any:2
    at: 10s
    every: 25s
`))
	if err != nil {
		panic(err)
	}
	plan, err := s.Plan(42, scenario.Sim)
	if err != nil {
		panic(err)
	}
	for _, f := range plan.Faults {
		fmt.Println(f.Begin, f.Fault, f.Server)
	}
	fmt.Println("healed at", plan.Heal, "and well at", plan.End)
	// Output:
	// 10s crash web-001
	// 10s crash web-003
	// 35s crash web-005
	// 35s crash web-008
	// healed at 1m0s and well at 3m5s
}

func ExampleVet() {
	_, err := scenario.Vet("bad.yaml", []byte(`name: bad
servers: [{name: web, count: 3}]
faults: [{fault: crash, on: wbe}]
`))
	fmt.Println(err)
	// Output:
	// bad.yaml:3:29: there is no server "wbe"; did you mean "web"?
}
